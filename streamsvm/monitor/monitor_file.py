"""A TrackingMonitor as JSON and arrays, for checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.monitor.rates import counts_pairs
from streamsvm.support.declaration import (
    FLAG,
    NOT_NEGATIVE,
    Field,
    NamedArrays,
    Range,
    as_int,
    rows_as_arrays,
)
from streamsvm.support.rows import Rows, SparseRows, copied, joined, shape

_SAMPLE = {
    "_signs": Field(("room",)),
    "_weights": Field(("room",), range=NOT_NEGATIVE),
    "_numbers": Field(("room",), np.int64, range=Range()),
    "_arrived": Field(("room",), np.int64),
}
_SUMS = ("_n", "_n_before", "_due", "_wake", "_is_thorough")


def check(monitor: Any) -> None:
    """Refuse a monitor with metrics whose state no file can hold.

    Parameters
    ----------
    monitor
        A `TrackingMonitor`.

    Raises
    ------
    ParameterError
        A metric keeps more than a confusion matrix.

    """
    for metric in monitor._scores.metrics:
        if not (counts_pairs(metric) and getattr(metric, "requires_labels", True)):
            raise ParameterError(
                f"metrics: {type(metric).__name__} cannot be kept in a checkpoint; use metrics of "
                "a confusion matrix (Accuracy, BalancedAccuracy, F1, ...)"
            )


def pairs_of(matrix: Any) -> list[list[Any]]:
    """Return the counts of a confusion matrix.

    Parameters
    ----------
    matrix
        A River confusion matrix.

    Returns
    -------
    list[list[Any]]
        A list [label, prediction, count] for each count that is not 0.

    """
    return [[y, p, count] for y, row in matrix.data.items() for p, count in row.items() if count]


def fill_matrix(matrix: Any, pairs: list[list[Any]]) -> None:
    """Add counts to a confusion matrix.

    Parameters
    ----------
    matrix
        A River confusion matrix.
    pairs
        The return value of `pairs_of`.

    """
    for y, p, count in pairs:
        matrix.update(y, p, count)


def to_file(monitor: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the state of a monitor as JSON content and arrays.

    Parameters
    ----------
    monitor
        A `TrackingMonitor`.

    Returns
    -------
    tuple[dict[str, Any], dict[str, np.ndarray]]
        The JSON content, and the arrays by name.

    """
    monitor._score()
    sample, rates, scores = monitor._passed_by, monitor._rates, monitor._scores
    content = {
        "parameters": _parameters(monitor),
        "sums": {name: getattr(monitor, name) for name in _SUMS},
        "seen": monitor._seen.state(),
        "last": monitor._last,
        "history": monitor.history.state(),
        "rates": [rates.n_examples, rates.seconds],
        "scores": [scores._right, scores._n, [pairs_of(m.cm) for m in scores.metrics]],
        "pairs": [[y, p, n] for (y, p), n in scores.pairs.items()],
        "sample": [sample.seen, sample.next, sample._w, sample._n, sample._random.getstate()],
    }
    arrays = {name: getattr(sample, name) for name in _SAMPLE}
    arrays["latencies"] = rates._latencies
    arrays["recent"] = scores._recent.astype(np.uint8)
    return content, arrays | _rows_to_file(sample._rows[: len(sample)])


def _parameters(monitor: Any) -> dict[str, Any]:
    return {
        "every": monitor.every,
        "sampled": monitor._passed_by.size,
        "most": monitor.history.most,
        "confidence": monitor.confidence,
        "horizon": monitor.horizon,
        "metrics": [type(metric).__name__ for metric in monitor._scores.metrics],
    }


def fill(monitor: Any, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Restore the state in a file into a new monitor of the same parameters.

    Parameters
    ----------
    monitor
        A `TrackingMonitor` that has seen no example.
    content, arrays
        The return value of `to_file`.

    Raises
    ------
    ParameterError
        The monitor in the file has other parameters.
    ValueError, KeyError, TypeError
        The file holds something else than `to_file` returns.

    """
    for name, value in _parameters(monitor).items():
        if content["parameters"].get(name, value) != value:
            raise ParameterError(
                f"the checkpoint's monitor has {name}={content['parameters'][name]!r}, "
                f"this one {value!r}"
            )
    sample, rates, scores = monitor._passed_by, monitor._rates, monitor._scores
    left = NamedArrays(arrays)
    for name, field in _SAMPLE.items():
        setattr(sample, name, left.take(name, field, {"room": len(sample._signs)}))
    latencies = Field((left.length_of("latencies", 0),))
    rates._latencies = left.take("latencies", latencies, {})
    for name in _SUMS:
        setattr(monitor, name, content["sums"].get(name, getattr(monitor, name)))
    # Files of older releases lack it; its averages start anew.
    if "seen" in content:
        monitor._seen.resume(content["seen"])
    monitor._last = content["last"]
    monitor.history.resume(content["history"])
    rates.n_examples, rates.seconds = content["rates"]
    scores._right, scores._n, pairs = content["scores"]
    if "pairs" in content:
        scores.pairs.update({(y, p): n for y, p, n in content["pairs"]})
        recent = Field((left.length_of("recent", 0),), np.uint8, range=FLAG)
        scores._recent = left.take("recent", recent, {}) > 0
    for metric, counts in zip(scores.metrics, pairs, strict=True):
        fill_matrix(metric.cm, counts)
    sample.seen, sample.next, sample._w, sample._n, state = content["sample"]
    sample._random.setstate((state[0], tuple(state[1]), state[2]))
    as_int("the number of sampled rows", sample._n, 0, len(sample._signs))
    sample._rows = _rows_from_file(left, sample._n)


def _rows_to_file(blocks: list[Rows]) -> dict[str, np.ndarray]:
    """Return rows, given as blocks of one row each, as arrays."""
    rows = joined(blocks, max([shape(block)[1] for block in blocks], default=0))
    arrays = rows_as_arrays(rows)
    return arrays | {"width": np.array([rows.d])} if isinstance(rows, SparseRows) else arrays


def _rows_from_file(arrays: NamedArrays, n: int) -> list[Rows]:
    """Return n rows as blocks of one row each.

    A file may hold a few rows more than n: they are not part of the sample.
    """
    if "rows" in arrays:
        n_rows, width = arrays.length_of("rows", 0), arrays.length_of("rows", 1)
    else:
        n_rows = arrays.length_of("row_start", 0) - 1
        width = int(arrays.take("width", Field((1,), np.int64, range=Range(0, 2**31)), {})[0])
    if n_rows < n:
        raise ValueError("there are fewer sampled rows than the sample says")
    rows = arrays.take_rows(n_rows, width)
    return [copied(rows, r) for r in range(n_rows)]
