"""Statistics of a stream so far: learning speed, latencies, accuracy and River metrics."""

from __future__ import annotations

import math
from collections import Counter
from itertools import starmap
from operator import eq
from typing import Any

import numpy as np

from streamsvm.errors import ParameterError

_LATENCIES = 1000
"""Number of latencies that are kept."""

RECENT = 1000
"""Number of examples of the recent accuracy."""


class Rates:
    """Learning speed: examples per second since the start, and the last 1,000 latencies.

    Attributes
    ----------
    n_examples
        Number of examples learnt.
    seconds
        Total time of learning them.

    """

    def __init__(self) -> None:
        self.n_examples = 0
        self.seconds = 0.0
        self._latencies = np.zeros(0)

    def add(self, n: int, seconds: float, latencies: list[float]) -> None:
        """Count examples that were learnt.

        Parameters
        ----------
        n
            Number of examples.
        seconds
            The time of learning all of them, without compiling.
        latencies
            Seconds for each event, or for one example of each batch.

        """
        self.n_examples += n
        self.seconds += seconds
        self._latencies = np.append(self._latencies, latencies)[-_LATENCIES:]

    def get(self) -> dict[str, float | None]:
        """Return the speed and the latencies.

        Returns
        -------
        dict[str, float | None]
            The values of ``examples_per_second`` and, in seconds, of the median ``latency_p50`` and
            the 99th percentile ``latency_p99``; None before the first example.

        """
        n = len(self._latencies)
        if n == 0 or self.seconds <= 0.0:
            return dict.fromkeys(("examples_per_second", "latency_p50", "latency_p99"))
        ordered = np.sort(self._latencies)
        return {
            "examples_per_second": self.n_examples / self.seconds,
            "latency_p50": float(ordered[n // 2]),
            "latency_p99": float(ordered[min(n - 1, math.ceil(0.99 * n) - 1)]),
        }


class Scores:
    """The accuracy and River metrics of predictions made before each label was learnt.

    As in River's ``evaluate.progressive_val_score``, an example without a prediction is not scored:
    None, predicted before the first label, is no label that a metric should count.

    Parameters
    ----------
    metrics
        None, one metric, or several: objects with ``update(y_true, y_pred)`` and ``get()``. A
        metric whose ``requires_labels`` is false is given {label: probability} as y_pred.
    learner
        The learner that predicts.

    Raises
    ------
    ParameterError
        A metric needs probabilities, which the learner does not have.
    TypeError
        A metric lacks a method, or ``get()`` does not return numbers.

    Attributes
    ----------
    metrics
        A list of the metrics.
    wants_probabilities
        Whether one of them needs probabilities.
    pairs
        {(label, predicted label): number of examples}.

    """

    def __init__(self, metrics: Any, learner: Any) -> None:
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
        self._right = 0
        self._n = 0
        self.pairs: Counter[tuple[Any, Any]] = Counter()
        self._recent = np.zeros(0, bool)

    def add(
        self,
        labels: list[Any],
        predicted: list[Any],
        probabilities: list[dict[Any, float]],
    ) -> None:
        """Score predictions that were made before their labels were learnt.

        Parameters
        ----------
        labels, predicted
            The true labels, and the predicted ones; None where nothing was predicted.
        probabilities
            {label: probability} of each example; empty if no metric uses probabilities.

        """
        scored = [(y, p) for y, p in zip(labels, predicted, strict=True) if p is not None]
        self._n += len(scored)
        right = np.fromiter(starmap(eq, scored), bool, len(scored))
        self._right += int(right.sum())
        self._recent = np.append(self._recent, right)[-RECENT:]
        pairs = Counter(scored)
        self.pairs.update(pairs)
        for metric in self.metrics:
            if not getattr(metric, "requires_labels", True):
                for y, guess, p in zip(labels, predicted, probabilities, strict=True):
                    if guess is not None:
                        metric.update(y, p)
            elif counts_pairs(metric):
                for (y, p), n in pairs.items():
                    metric.update(y, p, n)
            else:
                for y, p in scored:
                    metric.update(y, p)

    def get(self) -> dict[str, float | None]:
        """Return the values of all metrics.

        Returns
        -------
        dict[str, float | None]
            The ``accuracy`` so far, that of the last 1,000 examples, ``accuracy_recent``, and the
            mean over the labels of the share predicted correctly, ``balanced_accuracy``; all None
            before the first example. Then the value of each metric by the name of its class; a
            metric of several values has one entry for each.

        """
        shares = self.recall()
        values: dict[str, float | None] = {
            "accuracy": self._right / self._n if self._n else None,
            "accuracy_recent": float(self._recent.mean()) if len(self._recent) else None,
            "balanced_accuracy": float(np.mean(list(shares.values()))) if shares else None,
        }
        for metric in self.metrics:
            name, value = _name(metric), metric.get()
            for key, part in zip(_names(metric, name), _parts(value), strict=True):
                values[key] = float(part)
        return values

    def recall(self) -> dict[Any, float]:
        """Return the share of the examples of each label that were predicted correctly."""
        totals: Counter[Any] = Counter()
        for (label, _), n in self.pairs.items():
            totals[label] += n
        return {label: self.pairs[label, label] / n for label, n in totals.items()}


def _gives_numbers(metric: Any) -> bool:
    """Tell whether `get` returns a number, or several."""
    try:
        return all(isinstance(part, (int, float)) for part in _parts(metric.get()))
    except NotImplementedError:
        return False


def counts_pairs(metric: Any) -> bool:
    """Tell whether a metric only counts (label, prediction) pairs in a confusion matrix.

    Parameters
    ----------
    metric
        A River metric.

    Returns
    -------
    bool
        True for River's metrics of a confusion matrix.

    """
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
