"""A TrackingMonitor as JSON and arrays, for checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.monitor.rates import counts_pairs
from streamsvm.monitor.tracker import TrackingMonitor
from streamsvm.support.declaration import NamedArrays


def check(monitor: TrackingMonitor) -> None:
    """Refuse a monitor with a metric that keeps more than a confusion matrix."""
    for metric in monitor.scores.metrics:
        if not (counts_pairs(metric) and getattr(metric, "requires_labels", True)):
            raise ParameterError(
                f"metrics: {type(metric).__name__} cannot be kept in a checkpoint; use metrics of "
                "a confusion matrix (Accuracy, BalancedAccuracy, F1, ...)"
            )


def to_file(monitor: TrackingMonitor) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the state of a monitor as JSON content, and arrays by name."""
    content = monitor.state() | {"parameters": _parameters(monitor)}
    content["history"] = monitor.history.state()
    content["sample"], of_sample = monitor.passed_by.state()
    content["rates"], of_rates = monitor.rates.state()
    scores, of_scores = monitor.scores.state()
    return content | scores, of_sample | of_rates | of_scores


def _parameters(monitor: TrackingMonitor) -> dict[str, Any]:
    return {
        "every": monitor.every,
        "sampled": monitor.passed_by.size,
        "most": monitor.history.most,
        "confidence": monitor.confidence,
        "horizon": monitor.horizon,
        "metrics": [type(metric).__name__ for metric in monitor.scores.metrics],
    }


def fill(monitor: TrackingMonitor, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Restore the return value of `to_file` into a monitor that has seen no example.

    One of other parameters is refused. ValueError, KeyError, TypeError: it is something else.
    """
    for name, value in _parameters(monitor).items():
        if content["parameters"].get(name, value) != value:
            raise ParameterError(
                f"the checkpoint's monitor has {name}={content['parameters'][name]!r}, "
                f"this one {value!r}"
            )
    left = NamedArrays(arrays)
    monitor.resume(content)
    monitor.history.resume(content["history"])
    monitor.passed_by.resume(content["sample"], left)
    monitor.rates.resume(content["rates"], left)
    monitor.scores.resume(content, left)


def with_sample(
    model: Any, content: dict[str, Any], arrays: dict[str, np.ndarray]
) -> TrackingMonitor:
    """Return a monitor of a model with the sample in the return value of `to_file`, in a file.

    The sample's arrays are removed: `keep_sample` writes them again.
    """
    monitor = TrackingMonitor(model, sample=content["parameters"]["sampled"])
    monitor.passed_by.resume(content["sample"], NamedArrays(arrays))
    for name in monitor.passed_by.state()[1]:
        arrays.pop(name, None)
    return monitor


def keep_sample(
    monitor: TrackingMonitor, content: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write the sample of a monitor into the return value of `to_file`."""
    content["sample"], found = monitor.passed_by.state()
    arrays |= found
