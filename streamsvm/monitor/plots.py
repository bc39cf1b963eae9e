"""Charts as PNG files, by matplotlib."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamsvm.monitor.series import Chart

NAMES = ("gap", "objective", "support_vectors", "accuracy", "loss", "kappa", "dual", "delta")
"""The charts that are written."""

_LOOKS: tuple[dict[str, Any], ...] = (
    {"linewidth": 2.5, "alpha": 0.6},
    {"linewidth": 1.8, "linestyle": (0, (4, 2))},
    {"linewidth": 1.8, "linestyle": (0, (1, 1.5))},
)
"""Of the lines of a plot: the first one can be seen where another lies on it."""


def write(charts: Mapping[str, Chart], folder: Path) -> list[Path]:
    """Write charts, by the `NAMES` of their files, into a folder, which is made; return the files.

    ImportError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install matplotlib") from error
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    paths = {folder / f"{name}.png": charts[name] for name in NAMES if name in charts}
    for path, chart in paths.items():
        _drawn(chart).savefig(path, dpi=120)
    return list(paths)


def _drawn(chart: Chart) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    label = chart.unit.label or chart.lines[0].name
    axes.set(title=textwrap.fill(chart.title, 70), xlabel="examples", ylabel=label)
    axes.grid(alpha=0.3)
    for line, look in zip(chart.lines, _LOOKS, strict=False):
        drawn = axes.plot(chart.x, line.y, label=line.name, **look)[0]
        if line.band is not None:
            shade: dict[str, Any] = {"color": drawn.get_color(), "alpha": 0.25, "linewidth": 0}
            axes.fill_between(chart.x, *line.band, label=line.band_name, **shade)
    for i, n in enumerate(chart.marks):
        marked = "" if i else "a drift was noticed"
        axes.axvline(n, color="tab:red", linestyle=":", linewidth=1, label=marked)
    _set_scales(axes, chart)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(fontsize="small")
    return figure


def _set_scales(axes: Any, chart: Chart) -> None:
    """Make axes logarithmic on which something is above 0: matplotlib refuses the others."""
    from matplotlib.ticker import LogLocator

    for axis, values, shown in (
        (axes.xaxis, [chart.x], "{:,.0f}".format),
        (axes.yaxis, [line.y for line in chart.lines], chart.unit.shown),
    ):
        if chart.log and any((one > 0).any() for one in values):
            # Zeros are left out: clipped, they would be drawn as vertical lines.
            getattr(axes, f"set_{axis.axis_name}scale")("log", nonpositive="mask")
            # matplotlib's own labels between powers of ten overlap.
            axis.set_minor_locator(LogLocator(subs=(2, 5)))
            axis.set_minor_formatter(lambda value, _, shown=shown: shown(value))
        axis.set_major_formatter(lambda value, _, shown=shown: shown(value))
