"""Statistics of a stream so far: learning speed, latencies, and River metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.monitor.watched import Reported
from streamsvm.support.declaration import Field, NamedArrays

_RECENT = 1000
"""Number of latencies that are kept."""


class Rates:
    """Speed: examples per second since the start, and the last 1,000 latencies of learning.

    Without a run only the time of learning is known. A run sets `of_run`, which returns its number
    of examples, and its seconds without compiling and waiting: there is one speed everywhere.
    """

    def __init__(self) -> None:
        self.n_examples = 0
        self.seconds = 0.0
        self._latencies = np.zeros(0)
        self.of_run: Callable[[], tuple[int, float]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy has no run.
        return self.__dict__ | {"of_run": None}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        self.__dict__.update({"of_run": None} | contents)

    def add(self, n: int, seconds: float, latencies: list[float]) -> None:
        """Count n examples that were learnt in some seconds, without compiling.

        `latencies` are seconds for each event, or for one example of each batch.
        """
        self.n_examples += n
        self.seconds += seconds
        self._latencies = np.append(self._latencies, latencies)[-_RECENT:]

    @property
    def n_latencies(self) -> int:
        """Of how many the quantiles are; of fewer than 100 ``latency_p99`` is the longest."""
        return len(self._latencies)

    def get(self) -> dict[str, float | None]:
        """Return ``examples_per_second``, and the quantiles ``latency_p50`` and ``latency_p99``.

        The latter are in seconds; None before the first example.
        """
        n = len(self._latencies)
        self._follow_run()
        if n == 0 or self.seconds <= 0.0:
            return dict.fromkeys(("examples_per_second", "latency_p50", "latency_p99"))
        ordered = np.sort(self._latencies)
        return {
            "examples_per_second": self.n_examples / self.seconds,
            "latency_p50": float(ordered[n // 2]),
            "latency_p99": float(ordered[min(n - 1, math.ceil(0.99 * n) - 1)]),
        }

    def state(self) -> tuple[list[Any], dict[str, np.ndarray]]:
        """Return the sums as JSON values, and the arrays, for `resume`."""
        self._follow_run()
        return [self.n_examples, self.seconds], {"latencies": self._latencies}

    def follow(self, of_run: Callable[[], tuple[int, float]] | None) -> None:
        """Take the figures from a run that begins; None: it has ended, count on from them."""
        self._follow_run()
        self.of_run = of_run

    def _follow_run(self) -> None:
        if self.of_run is not None:
            self.n_examples, self.seconds = self.of_run()

    def restore(self, state: list[Any], arrays: NamedArrays) -> None:
        """Continue from what `state` returned."""
        self.n_examples, self.seconds = state
        self._latencies = arrays.take("latencies", Field((arrays.length_of("latencies", 0),)), {})


class Metrics:
    """River metrics of predictions made before each label was learnt.

    `metrics` is None, one metric, or several: objects with ``update(y_true, y_pred)`` and
    ``get()``. A metric whose ``requires_labels`` is false is given {label: probability} as y_pred,
    which `wants_probabilities` tells. Others than numbers, or probabilities that the learner lacks,
    are refused.
    """

    def __init__(self, metrics: Any, learner: Reported) -> None:
        several = isinstance(metrics, (list, tuple))
        self.metrics: list[Any] = [] if metrics is None else list(metrics) if several else [metrics]
        for metric in self.metrics:
            if not (hasattr(metric, "update") and hasattr(metric, "get")):
                raise TypeError(f"metrics: {metric!r} has no update() and get(): use River metrics")
            if not _gives_numbers(metric):
                name = type(metric).__name__
                raise TypeError(f"metrics: {name} gives no number: it cannot be recorded")
        self.wants_probabilities = any(
            not getattr(m, "requires_labels", True) for m in self.metrics
        )
        if self.wants_probabilities and not hasattr(learner, "probabilities_of"):
            raise ParameterError(
                f"metrics: {type(learner).__name__} has no probabilities; use metrics of labels "
                "such as Accuracy or F1"
            )

    def update(
        self,
        scored: list[tuple[Any, Any]],
        counts: Mapping[tuple[Any, Any], int],
        probabilities: list[dict[Any, float]],
    ) -> None:
        """Score predictions, as (label, prediction), and `counts` of equal ones.

        There are no `probabilities` if no metric uses them.
        """
        for metric in self.metrics:
            if not getattr(metric, "requires_labels", True):
                for (y, _), p in zip(scored, probabilities, strict=True):
                    metric.update(y, p)
            elif counts_pairs(metric):
                for (y, p), n in counts.items():
                    metric.update(y, p, n)
            else:
                for y, p in scored:
                    metric.update(y, p)

    def get(self) -> dict[str, float]:
        """Return each metric by the name of its class; one of several values has them by name."""
        values: dict[str, float] = {}
        for metric in self.metrics:
            name, value = _name(metric), metric.get()
            for key, part in zip(_names(metric, name), _parts(value), strict=True):
                values[key] = float(part)
        return values

    def check_can_be_kept(self) -> None:
        """Refuse, by a ParameterError, a metric that keeps more than a confusion matrix."""
        for metric in self.metrics:
            if not (counts_pairs(metric) and getattr(metric, "requires_labels", True)):
                raise ParameterError(
                    f"metrics: {type(metric).__name__} cannot be kept in a checkpoint; use metrics "
                    "of a confusion matrix (Accuracy, BalancedAccuracy, F1, ...)"
                )

    def state(self) -> list[Any]:
        """Return the counts of each metric as JSON values, for `resume`."""
        return [_pairs_of(metric.cm) for metric in self.metrics]

    def restore(self, state: list[Any]) -> None:
        """Continue from what `state` returned."""
        for metric, pairs in zip(self.metrics, state, strict=True):
            for y, p, count in pairs:
                metric.cm.update(y, p, count)


def _pairs_of(matrix: Any) -> list[list[Any]]:
    """Return [label, prediction, count] of each count of River's confusion matrix but 0."""
    return [[y, p, count] for y, row in matrix.data.items() for p, count in row.items() if count]


def _gives_numbers(metric: Any) -> bool:
    """Tell whether `get` returns a number, or several."""
    try:
        return all(isinstance(part, (int, float)) for part in _parts(metric.get()))
    except NotImplementedError:
        return False


def counts_pairs(metric: Any) -> bool:
    """Tell whether a metric of River only counts (label, prediction) in a confusion matrix."""
    return hasattr(metric, "cm") and type(metric).__module__.startswith("river.metrics.")


def _name(metric: Any) -> str:
    """Return the name of the class of a metric, with that of the metric it wraps, if any."""
    # River's Rolling and TimeRolling wrap a metric and pass attribute access on to it.
    inner = getattr(metric, "obj", None)
    own = type(metric).__name__
    return own if inner is None else f"{own}{type(inner).__name__}"


def _names(metric: Any, name: str) -> list[str]:
    """Return a name for each value of a metric: `name`, or those of the metrics it consists of."""
    value = metric.get()
    if isinstance(value, (list, tuple)):
        inner = getattr(metric, "data", None) or list(metric)
        return [_name(part) for part in inner]
    return [name]


def _parts(value: Any) -> list[Any]:
    """Return the values of a metric as a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value]
