"""What a model of two features predicts where, as a picture."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa

from streamsvm.monitor.watched import Model, Reported
from streamsvm.page.confusion import told_apart
from streamsvm.support.printing import escape

_SIDE = 48
_SIZE = 336
_MOST_LABELS = 8
_OTHERS = "other labels"
_MOST_POINTS = 200


class Kernelized(Protocol):
    """A learner with support vectors, as its picture asks for it."""

    lock: AbstractContextManager[Any]
    targets: Any  # its labels

    def margins_many(self, x: Any, /) -> np.ndarray:
        """Return the margins of n rows."""

    def support_vectors(self) -> Any:
        """Return the support vectors, with their `rows`."""


class Regions:
    """The regions of a learner, the last step of a model.

    Empty texts if it has not two named features, or no vectors.

    The box that is drawn is the mean of the support vectors and 2.5 standard deviations around it,
    rounded, so that its ends are no event's values. `values`: draw some support vectors, too.
    """

    def __init__(self, model: Model, learner: Reported, values: bool = False) -> None:
        self._learner, self._values = learner, values
        has_steps = len(getattr(model, "steps", ())) > 1
        self._scaled = ", after the steps before the learner" if has_steps else ""
        self._n, self._box = 0, np.zeros((0, 2))
        self._points = np.zeros((0, 2))

    def drawn(self) -> str:
        """Return a figure of HTML: what is predicted now."""
        names = self._learner.feature_names
        if len(names) != 2 or not all(isinstance(name, str) for name in names):
            return ""
        if not self._look():
            return ""
        (left, right), (bottom, top) = self._box
        side = np.linspace(0.5 / _SIDE, 1.0 - 0.5 / _SIDE, _SIDE)
        # Rows of the picture from the top.
        x, y = np.meshgrid(left + side * (right - left), top - side * (top - bottom))
        grid = pa.table({names[0]: x.ravel(), names[1]: y.ravel()})
        predicted = _of_few(told_apart(self._predicted(grid)))
        labels = sorted(set(predicted), key=lambda label: (label == _OTHERS, label))
        shares = {label: predicted.count(label) / len(predicted) for label in labels}
        number = {label: i for i, label in enumerate(labels)}
        cells = np.array([number[p] for p in predicted]).reshape(_SIDE, _SIDE)
        said = ", ".join(f"{label} in {share:.0%} of the box" for label, share in shares.items())
        across, up = f"{names[0]}: {left:g} to {right:g}", f"{names[1]}: {bottom:g} to {top:g}"
        picture = (
            f'<svg class="regions" viewBox="0 0 {_SIZE} {_SIZE}" role="img" '
            f'aria-label="{escape(f"Predicted: {said}; {across}, {up}.")}">'
            f"{_rectangles(cells)}{self._circles()}</svg>"
        )
        axes = f"<p>Across {escape(across)}; up {escape(up)}{self._scaled}.</p>"
        items = [
            f'<li><svg class="swatch" width="14" height="14" aria-hidden="true"><rect '
            f'class="c{number[label]}" width="14" height="14"/></svg> {escape(label)} '
            f"<b>{share:.0%}</b></li>"
            for label, share in shares.items()
        ]
        return f'{picture}{axes}<ul class="legend">{"".join(items)}</ul>'

    def _predicted(self, grid: pa.Table) -> list[Any]:
        """Return the labels predicted for rows; not as Arrow, which mixed labels cannot be."""
        learner = cast(Kernelized, self._learner)
        with learner.lock:
            labels = learner.targets.labels_of(learner.margins_many(grid))
        found: list[Any] = labels.tolist()
        return found

    def _look(self) -> bool:
        """Choose the box, again when the vectors have become many more or fewer."""
        n = self._learner.n_support_vectors or 0
        if n < 10 or not hasattr(self._learner, "support_vectors"):
            return False
        if self._values or not 0.8 * self._n <= n <= 1.25 * self._n:
            rows = self._learner.support_vectors().rows
            rows = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, np.float64)
            self._n, middle, spread = n, rows.mean(axis=0), 2.5 * rows.std(axis=0)
            if rows.shape[1] != 2 or not (spread > 0.0).all() or not np.isfinite(spread).all():
                self._n = 0
                return False
            # To a tenth of the spread.
            unit = 10.0 ** np.floor(np.log10(spread))
            ends = np.stack([middle - spread, middle + spread], axis=1)
            self._box = np.round(ends / unit[:, None]) * unit[:, None]
            self._points = rows[-_MOST_POINTS:] if self._values else rows[:0]
        return True

    def _circles(self) -> str:
        (left, right), (bottom, top) = self._box
        x = (self._points[:, 0] - left) / (right - left) * _SIZE
        y = (top - self._points[:, 1]) / (top - bottom) * _SIZE
        places = zip(x.tolist(), y.tolist(), strict=True)
        return "".join(
            f'<circle class="point" cx="{a:.1f}" cy="{b:.1f}" r="2"/>' for a, b in places
        )


def _of_few(labels: list[str]) -> list[str]:
    """Return labels of which those are one that would have no colour of their own: the rarest."""
    counts = Counter(labels)
    if len(counts) <= _MOST_LABELS:
        return labels
    own = {label for label, _ in counts.most_common(_MOST_LABELS - 1)}
    return [label if label in own else _OTHERS for label in labels]


def _rectangles(cells: np.ndarray) -> str:
    """Return a rectangle for each run of equal cells of a row."""
    size, parts = _SIZE // _SIDE, []
    for i, row in enumerate(cells):
        starts = [0, *(np.flatnonzero(np.diff(row)) + 1).tolist()]
        for start, stop in zip(starts, [*starts[1:], len(row)], strict=True):
            parts.append(
                f'<rect class="c{row[start]}" x="{start * size}" y="{i * size}" '
                f'width="{(stop - start) * size}" height="{size}"/>'
            )
    return "".join(parts)
