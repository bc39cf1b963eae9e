"""A monitor's history as PNG plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_PLOTS = {
    "support_vectors": ("support vectors", ("n_support_vectors", "n_free", "n_bounded")),
    "accuracy": ("progressive accuracy", ("accuracy",)),
    "kappa": ("share of null steps", ("kappa",)),
}


def write(monitor: Any, folder: Path) -> list[Path]:
    """Write the plots and return their paths.

    Parameters
    ----------
    monitor
        A `TrackingMonitor`.
    folder
        Where to; it is made if it does not exist.

    Returns
    -------
    list[Path]
        The paths of the files.

    Raises
    ------
    ImportError
        matplotlib is not installed.

    """
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install matplotlib") from error
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    paths = [_gap(monitor, folder / "gap.png")]
    for name, (title, columns) in _PLOTS.items():
        figure, axes = _axes(title)
        for column in columns:
            axes.plot(*_series(monitor, column), label=column)
        if len(columns) > 1:
            axes.legend()
        figure.savefig(folder / f"{name}.png", dpi=120)
        paths.append(folder / f"{name}.png")
    return paths


def _axes(title: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel="examples", ylabel=title)
    axes.grid(alpha=0.3)
    return figure, axes


def _series(monitor: Any, column: str) -> tuple[Any, Any]:
    return monitor.history.column("n_examples"), monitor.history.column(column)


def _gap(monitor: Any, path: Path) -> Path:
    """Plot the gap, its running mean and the certificate over the examples, on log axes."""
    figure, axes = _axes("normalised duality gap")
    t, low = _series(monitor, "gap_low")
    axes.plot(*_series(monitor, "gap"), color="tab:blue", alpha=0.5, linewidth=1, label="gap")
    axes.fill_between(
        t, low, monitor.history.column("gap_high"), color="tab:blue", alpha=0.15, linewidth=0
    )
    axes.plot(*_series(monitor, "averaged_gap"), color="tab:blue", label="mean of the gap so far")
    certificate = monitor.history.column("certificate")
    if (certificate == certificate).any():
        axes.plot(t, certificate, color="tab:red", label="certificate (bound on the mean)")
    if len(t):
        axes.set(xscale="log", yscale="log")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(path, dpi=120)
    return path
