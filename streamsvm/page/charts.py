"""Lines over a stream as SVG, and as a table: no figure is in a picture alone.

Colours and dashes are given by classes (l0, l1, ... and b0, b1, ... of bands), so that a page's
style follows the reader's light or dark screen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from streamsvm.monitor.figures import thousands
from streamsvm.monitor.series import Chart, Line
from streamsvm.support.printing import escape

_WIDTH, _HEIGHT = 480, 220  # about as wide as a card, so that texts are not made smaller
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 12, 10, 44
_INNER_WIDTH, _INNER_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_MOST_ROWS = 12

Scale = Callable[[Any], np.ndarray]


def parts_of(name: str, chart: Chart, log_x: bool = False) -> dict[str, str]:
    """Return the parts of a page that show a chart: the picture, and its table; or none."""
    picture = svg(chart, log_x)
    return {name: picture, f"{name}-table": table(chart)} if picture else {}


def svg(chart: Chart, log_x: bool = False) -> str:
    """Return a chart as a figure of HTML with a legend; empty: there are not two points to draw.

    `log_x`: the horizontal axis is logarithmic, too, if the vertical one is.
    """
    ys = [_logs(line.y, chart.log) for line in chart.lines]
    if len(chart.x) < 2 or not any(np.isfinite(y).sum() > 1 for y in ys):
        return ""
    low, high = _range(chart, ys)
    log_x = log_x and chart.log and bool(chart.x[0] > 0.0)
    places, marks_at = _logs(chart.x, log_x), _logs(np.array(chart.marks), log_x)
    left, right = float(places[0]), float(places[-1])
    across = _scale(left, right, 0.0, _INNER_WIDTH)
    up = _scale(low, high, _INNER_HEIGHT, 0.0)
    x = across(places)
    bands, lines = [], []
    for i, (line, y) in enumerate(zip(chart.lines, ys, strict=True)):
        if line.band is not None:
            ends = [up(_logs(end, chart.log)) for end in line.band]
            bands.append(f'<path class="b{i}" d="{_area(x, *ends)}"/>')
        lines.append(f'<path class="l{i}" d="{_path(x, up(y))}"/>')
    inside = [m for m in marks_at.tolist() if left <= m <= right]
    marks = [f'<path class="mark" d="M{across(m):.1f},0V{_INNER_HEIGHT}"/>' for m in inside]
    # An inner picture clips what is drawn in it.
    inner = (
        f'<svg x="{_LEFT}" y="{_TOP}" width="{_INNER_WIDTH}" height="{_INNER_HEIGHT}">'
        f"{''.join(bands + marks + lines)}</svg>"
    )
    picture = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(_in_words(chart))}">'
        f"{''.join(_axes(chart, (left, right, low, high), log_x, (across, up)))}{inner}</svg>"
    )
    return picture + _legend(chart, bool(inside))


def table(chart: Chart) -> str:
    """Return the newest points of a chart, thinned, as a table."""
    step = max(1, len(chart.x) // _MOST_ROWS)
    rows = range(len(chart.x) - 1, -1, -step)
    head = "".join(f'<th scope="col">{escape(line.name)}</th>' for line in chart.lines)
    body = "".join(
        f'<tr><th scope="row">{chart.x[i]:,.0f}</th>'
        + "".join(
            f'<td class="n">{escape(_with_band(chart, line, i))}</td>' for line in chart.lines
        )
        + "</tr>"
        for i in rows
    )
    return f'<table><tr><th scope="col">examples</th>{head}</tr>{body}</table>'


def in_words(value: float, low: float, high: float, shown: Callable[[float], str]) -> str:
    """Return a value and its interval; one that begins with the value is an upper bound.

    >>> from streamsvm.page.charts import in_words
    >>> [in_words(0.02, low, 0.03, "{:.2g}".format) for low in (0.01, 0.02, float("nan"))]
    ['0.02 (0.01 to 0.03)', '0.02 (at most 0.03)', '0.02']
    """
    if not math.isfinite(low) or not math.isfinite(high) or low == high:
        return shown(value)
    ends = f"at most {shown(high)}" if low == value else f"{shown(low)} to {shown(high)}"
    return f"{shown(value)} ({ends})"


def _with_band(chart: Chart, line: Line, i: int) -> str:
    if not math.isfinite(line.y[i]):
        return "-"
    if line.band is None:
        return chart.unit.shown(line.y[i])
    return in_words(line.y[i], line.band[0][i], line.band[1][i], chart.unit.shown)


def _newest(chart: Chart, line: Line) -> str:
    known = np.flatnonzero(np.isfinite(line.y))
    return _with_band(chart, line, int(known[-1])) if len(known) else "-"


def _in_words(chart: Chart) -> str:
    """Return a chart in words, for those who cannot see it."""
    newest = "; ".join(f"{line.name} {_newest(chart, line)}" for line in chart.lines)
    ends = f"from {chart.x[0]:,.0f} to {chart.x[-1]:,.0f} examples"
    return f"{chart.title}, {ends}. Newest: {newest}."


def _legend(chart: Chart, has_marks: bool) -> str:
    items = [
        f"<li>{_swatch(f'l{i}')} {escape(line.name)} <b>{escape(_newest(chart, line))}</b></li>"
        for i, line in enumerate(chart.lines)
    ]
    if has_marks:
        items.append(f"<li>{_swatch('mark')} a drift was noticed</li>")
    return f'<ul class="legend">{"".join(items)}</ul>'


def _swatch(kind: str) -> str:
    return (
        '<svg class="swatch" width="28" height="10" aria-hidden="true">'
        f'<path class="{kind}" d="M0,5H28"/></svg>'
    )


def _logs(values: np.ndarray, is_log: bool) -> np.ndarray:
    """Return the values, or their logarithms if the axis has these."""
    return np.log10(np.where(values > 0.0, values, np.nan)) if is_log else values


def _range(chart: Chart, ys: list[np.ndarray]) -> tuple[float, float]:
    """Return the ends of the vertical axis.

    Of the lines, and of the later half of bands, as these begin as wide as can be.
    """
    half = len(chart.x) // 2
    bands = [end[half:] for line in chart.lines if line.band is not None for end in line.band]
    every = [*ys, *(_logs(end, chart.log) for end in bands)]
    known = np.concatenate([y[np.isfinite(y)] for y in every])
    low, high = float(known.min()), float(known.max())
    room = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    # What is never below 0 is not drawn below.
    below = low - room if low < 0.0 or chart.log else max(0.0, low - room)
    return below, high + room


def _scale(low: float, high: float, start: float, end: float) -> Scale:
    factor = (end - start) / ((high - low) or 1.0)
    return lambda value: start + (np.asarray(value) - low) * factor


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """Return the commands of a path, with gaps where y is not finite."""
    parts, is_open = [], False
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if not math.isfinite(b):
            is_open = False
            continue
        parts.append(f"{'L' if is_open else 'M'}{a:.1f},{b:.1f}")
        is_open = True
    return "".join(parts)


def _area(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    known = np.isfinite(low) & np.isfinite(high)
    if known.sum() < 2:
        return ""
    # Far ends are outside of the picture anyway.
    low, high = (np.clip(end[known], -1e4, 1e4) for end in (low, high))
    there = _path(x[known], low)
    back = _path(x[known][::-1], high[::-1])
    return there + "L" + back[1:] + "Z"


def _axes(
    chart: Chart, ends: tuple[float, ...], log_x: bool, to: tuple[Scale, Scale]
) -> Iterator[str]:
    (left, right, low, high), (across, up) = ends, to
    bottom = _TOP + _INNER_HEIGHT
    for value in (_powers if chart.log else _ticks)(low, high):
        y = _TOP + float(up(value))
        text = chart.unit.shown(10.0**value if chart.log else value)
        yield f'<path class="grid" d="M{_LEFT},{y:.1f}H{_WIDTH - _RIGHT}"/>'
        yield f'<text class="end" x="{_LEFT - 8}" y="{y + 4:.1f}">{escape(text)}</text>'
    for value in (_powers if log_x else _ticks)(left, right):
        x = _LEFT + float(across(value))
        text = thousands(10.0**value if log_x else value)
        yield f'<path class="grid" d="M{x:.1f},{_TOP}V{bottom}"/>'
        yield f'<text class="middle" x="{x:.1f}" y="{bottom + 18}">{text}</text>'
    middle = _LEFT + _INNER_WIDTH // 2
    yield f'<text class="middle" x="{middle}" y="{_HEIGHT - 4}">examples</text>'


def _ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers from low to high."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = size * next(m for m in (1, 2, 5, 10) if m * size >= rough)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Return the logarithms of 1, 2 and 5 times powers of ten; of the powers only, if many.

    Where these are fewer than three, those of round numbers between the ends.
    """
    digits = (1,) if high - low > 2.5 else (1, 2, 5)
    powers = range(math.floor(low), math.ceil(high) + 1)
    found = [p + math.log10(d) for p in powers for d in digits]
    found = [value for value in found if low <= value <= high]
    if len(found) > 2 or high - low > 1.0:
        return found
    return [math.log10(value) for value in _ticks(10.0**low, 10.0**high)]
