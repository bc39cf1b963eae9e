"""A TrackingMonitor as JSON and arrays, for checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.monitor.rates import counts_pairs
from streamsvm.support.rows import Rows, SparseRows, copied, joined, shape

_SAMPLE = ("_signs", "_weights", "_numbers", "_arrived")
_SUMS = ("_n", "_measured_at", "_gap_sum", "_due", "_wake", "_is_thorough")


def check(monitor: Any) -> None:
    """Refuse a monitor with metrics whose state no file can hold.

    Raises
    ------
    ParameterError
        A metric is not made of a confusion matrix alone.

    """
    for metric in monitor._scores.metrics:
        if not (counts_pairs(metric) and getattr(metric, "requires_labels", True)):
            raise ParameterError(
                f"metrics: {type(metric).__name__} cannot be kept in a checkpoint; use metrics of "
                "a confusion matrix (Accuracy, BalancedAccuracy, F1, ...)"
            )


def pairs_of(matrix: Any) -> list[list[Any]]:
    """Return the counts of a confusion matrix as [label, prediction, count]."""
    return [[y, p, count] for y, row in matrix.data.items() for p, count in row.items() if count]


def fill_matrix(matrix: Any, pairs: list[list[Any]]) -> None:
    """Add counts to a confusion matrix."""
    for y, p, count in pairs:
        matrix.update(y, p, count)


def to_file(monitor: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return JSON content and arrays: all that the monitor knows."""
    monitor._score()
    sample, rates, scores = monitor._passed_by, monitor._rates, monitor._scores
    content = {
        "parameters": _parameters(monitor),
        "sums": {name: getattr(monitor, name) for name in _SUMS},
        "last": monitor._last,
        "history": monitor.history.state(),
        "rates": [rates.n_examples, rates.seconds],
        "scores": [scores._right, scores._n, [pairs_of(m.cm) for m in scores.metrics]],
        "sample": [sample.seen, sample.next, sample._w, sample._n, sample._random.getstate()],
    }
    arrays = {name: getattr(sample, name) for name in _SAMPLE}
    arrays["latencies"] = rates._latencies
    return content, arrays | _rows_to_file(sample._rows[: len(sample)])


def _parameters(monitor: Any) -> dict[str, Any]:
    return {
        "every": monitor.every,
        "sample": monitor.sample,
        "most": monitor.history.most,
        "metrics": [type(metric).__name__ for metric in monitor._scores.metrics],
    }


def fill(monitor: Any, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Bring a new monitor of the same parameters to the state in a file.

    Raises
    ------
    ParameterError
        Its parameters are other ones.

    """
    for name, value in _parameters(monitor).items():
        if content["parameters"][name] != value:
            raise ParameterError(
                f"the checkpoint's monitor has {name}={content['parameters'][name]!r}, "
                f"this one {value!r}"
            )
    sample, rates, scores = monitor._passed_by, monitor._rates, monitor._scores
    for name, value in content["sums"].items():
        setattr(monitor, name, value)
    monitor._last = content["last"]
    monitor.history.resume(content["history"])
    rates.n_examples, rates.seconds = content["rates"]
    rates._latencies = arrays["latencies"]
    scores._right, scores._n, pairs = content["scores"]
    for metric, counts in zip(scores.metrics, pairs, strict=True):
        fill_matrix(metric.cm, counts)
    sample.seen, sample.next, sample._w, sample._n, state = content["sample"]
    sample._random.setstate((state[0], tuple(state[1]), state[2]))
    for name in _SAMPLE:
        setattr(sample, name, arrays[name])
    sample._rows = _rows_from_file(arrays)


def _rows_to_file(blocks: list[Rows]) -> dict[str, np.ndarray]:
    """Return blocks of one row each as arrays."""
    rows = joined(blocks, max([shape(block)[1] for block in blocks], default=0))
    if isinstance(rows, SparseRows):
        return {
            "row_start": rows.start,
            "columns": rows.columns,
            "values": rows.values,
            "width": np.array([rows.d]),
        }
    return {"rows": rows}


def _rows_from_file(arrays: dict[str, np.ndarray]) -> list[Rows]:
    if "rows" in arrays:
        rows: Rows = arrays["rows"]
    else:
        width = int(arrays["width"][0])
        rows = SparseRows(arrays["row_start"], arrays["columns"], arrays["values"], width)
    n = shape(rows)[0]
    return [copied(rows, r) for r in range(n)]
