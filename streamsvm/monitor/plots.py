"""A monitor's history as PNG plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamsvm.monitor.history import History
from streamsvm.monitor.hits import band
from streamsvm.monitor.report import gaps_of

_PLOTS = {
    "support_vectors": (
        "Support vectors",
        "number of examples",
        {
            "n_support_vectors": "support vectors",
            "n_bounded": "of them at C: margin errors",
            "n_free": "of them between 0 and C",
        },
    ),
    "accuracy": (
        "Progressive accuracy: predicted before learnt",
        "share right, shaded: 95 % intervals",
        {
            "accuracy": "since the start",
            "accuracy_recent": "of the last 1,000 examples",
            "balanced_accuracy": "balanced: the mean over the labels, since the start",
        },
    ),
    "kappa": (
        "Training steps that changed nothing",
        "share of the steps so far",
        {"kappa": "share of the steps"},
    ),
    "loss": (
        "Mean loss so far, each before learning",
        "loss",
        {"mean_loss": "mean loss", "regret_bound": "its regret is at most"},
    ),
    "dual": ("Dual objective: what the steps raise", "dual objective", {"dual": "dual objective"}),
    "delta": ("Distance from the optimum", "delta", {"delta": "delta"}),
}
"""Title, label of the axis, and {column: name} of each plot."""


_LOOKS: tuple[dict[str, Any], ...] = (
    {"linewidth": 3.5, "alpha": 0.6},
    {"linewidth": 1.8, "linestyle": (0, (4, 2))},
    {"linewidth": 1.8, "linestyle": (0, (1, 1.5))},
)
"""Of the lines of a plot: the first one can be seen where another lies on it."""

_SHADE: dict[str, Any] = {"alpha": 0.15, "linewidth": 0}

_OPTIMUM = {
    "kept": "the optimum",
    "merged": "the optimum of the vectors kept",
    "problems": "the optimum of the examples kept",
    "stream": "the batch optimum",
    "since": "the optimum since it is watched",
    "window": "the optimum of the window",
}
"""What the model is compared with, by `TrackingMonitor.covers`."""


def write(monitor: Any, folder: Path) -> list[Path]:
    """Write the plots of a `TrackingMonitor` into a folder, which is made; return their paths.

    Gap, objective, or both, then the other plots that have values. Drifts that the learner noticed
    are marked.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install matplotlib") from error
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    paths = [_gap(monitor, folder)] if monitor.learner.has_dual else []
    if _has_values(monitor, "objective"):
        paths.append(_objective(monitor, folder))
    # Drifts are counted from the first example, records since the monitor was attached.
    drifts = np.unique(monitor.history.column("last_drift")) - monitor.n_before
    names = ["support_vectors", "accuracy", "loss", "kappa"]
    if not monitor.learner.has_dual:
        names.append("dual")
    return paths + draw_lines(monitor.history, "n_examples", folder, names, drifts[drifts > 0])


def draw_lines(
    history: History, by: str, folder: Path, names: Sequence[str], drifts: Sequence[float] = ()
) -> list[Path]:
    """Write the plots of these names that have values, over the column `by`; return their paths."""
    paths = []
    for name in names:
        title, label, columns = _PLOTS[name]
        lines = {column: history.column(column) for column in columns}
        lines = {column: line for column, line in lines.items() if not np.isnan(line).all()}
        if not lines:
            continue
        figure, axes = _axes(title, label)
        for (column, line), look in zip(lines.items(), _LOOKS, strict=False):
            drawn = axes.plot(history.column(by), line, label=columns[column], **look)[0]
            # More bands would hide each other.
            is_shaded = column in ("accuracy", "accuracy_recent")
            if is_shaded and (ends := band(history.column, column)) is not None:
                axes.fill_between(history.column(by), *ends, color=drawn.get_color(), **_SHADE)
        for i, n in enumerate(drifts):
            marked = "" if i else "a drift was noticed"
            axes.axvline(n, color="tab:red", linestyle=":", linewidth=1, label=marked)
        if len(axes.get_lines()) > 1:
            axes.legend(fontsize="small")
        paths.append(_write(figure, folder / f"{name}.png"))
    return paths


def _axes(title: str, label: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure
    from matplotlib.ticker import StrMethodFormatter

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.set(title=title, xlabel="examples", ylabel=label)
    axes.grid(alpha=0.3)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    return figure, axes


def _series(monitor: Any, column: str) -> tuple[Any, Any]:
    return monitor.history.column("n_examples"), monitor.history.column(column)


def _has_values(monitor: Any, column: str) -> bool:
    return not bool(np.isnan(monitor.history.column(column)).all())


def _write(figure: Any, path: Path) -> Path:
    figure.savefig(path, dpi=120)
    return path


def _set_log(axes: Any) -> None:
    """Make each axis logarithmic on which something is above 0: matplotlib refuses the others."""
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    shown = [line.get_data() for line in axes.get_lines()]
    for i, name in enumerate(("xscale", "yscale")):
        if any((data[i] > 0).any() for data in shown):
            # Zeros are left out: clipped, they would be drawn as vertical lines.
            getattr(axes, f"set_{name}")("log", nonpositive="mask")
            # matplotlib's own labels between powers of ten overlap.
            axis, form = (axes.yaxis, "{x:g}") if i else (axes.xaxis, "{x:,.0f}")
            axis.set_minor_locator(LogLocator(subs=(2, 5)))
            for put in (axis.set_major_formatter, axis.set_minor_formatter):
                put(StrMethodFormatter(form))


def _fill(axes: Any, t: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    label = "its 95 % interval, from a sample"
    axes.fill_between(t, low, high, label=label, color="tab:blue", **_SHADE)


def _gap(monitor: Any, folder: Path) -> Path:
    """Plot the gap and its mean, with the bounds that they have, on log axes."""
    covers = monitor.covers
    figure, axes = _axes(
        f"How far the model is from {_OPTIMUM[covers]}", "duality gap, a mean over the examples"
    )
    t, low = _series(monitor, "gap_low")
    high = monitor.history.column("gap_high")
    now, mean, most = gaps_of(covers)
    axes.plot(*_series(monitor, now), color="tab:blue", alpha=0.5, linewidth=1, label="gap now")
    if now == "gap" and (high > low).any():
        _fill(axes, t, low, high)
    if _has_values(monitor, mean):
        label = "its mean since the start"
        axes.plot(*_series(monitor, mean), color="tab:red", linestyle="--", label=label)
    if _has_values(monitor, most):
        # A band on the mean: a single gap may be above.
        ends = monitor.history.column(mean), monitor.history.column(most)
        label = f"this mean is at most so much, {monitor.confidence:.0%}: the certificate"
        axes.fill_between(t, *ends, color="tab:red", label=label, **_SHADE | {"alpha": 0.3})
    _set_log(axes)
    axes.legend(fontsize="small")
    return _write(figure, folder / "gap.png")


def _objective(monitor: Any, folder: Path) -> Path:
    """Plot the primal objective over the stream of a learner that has no gap of the stream."""
    figure, axes = _axes("Objective: what training lowers", "penalty plus mean loss, on a sample")
    t, objective = _series(monitor, "objective")
    axes.plot(t, objective, color="tab:blue", label="objective")
    if _has_values(monitor, "objective_low"):
        low, high = (monitor.history.column(f"objective_{end}") for end in ("low", "high"))
        _fill(axes, t, low, high)
        axes.legend(fontsize="small")
    return _write(figure, folder / "objective.png")
