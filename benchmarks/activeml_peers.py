"""scikit-activeml's ways of asking for labels on a stream, around any classifier of River's kind.

Its package is optional: `STRATEGIES` is empty without it. Its strategies are given the
probabilities that the classifier predicts. Those that look at features, too, get them as a dense
row, names hashed to 64 columns where there are more, each column divided by its standard deviation.
Parzen windows of "probabilistic" are fitted anew to the labels so far for each event, as its
package does it. Left out are strategies of the pool, which fit the classifier itself again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

try:
    from skactiveml import stream
    from skactiveml.base import SkactivemlClassifier
    from skactiveml.stream import budgetmanager
except ImportError:
    stream = None
    SkactivemlClassifier = object

_COLUMNS = 64


class Told(SkactivemlClassifier):  # type: ignore[misc]
    """A classifier that predicts the probabilities that it is told."""

    row: np.ndarray

    def fit(self, x: Any, y: Any, sample_weight: Any = None) -> Told:
        """Do nothing: the classifier around which it is asked learns by events."""
        return self

    def predict_proba(self, x: Any, **kwargs: Any) -> np.ndarray:
        """Return what it was told, (1, classes)."""
        return self.row


class Rows:
    """Makes dense rows of events, with the scales of a whole stream."""

    def __init__(self, events: list[Any]) -> None:
        names = dict.fromkeys(name for x, _ in events for name in x)
        self._d = min(len(names), _COLUMNS)
        place = {name: j for j, name in enumerate(names)}
        if len(names) > _COLUMNS:
            place = {name: zlib.crc32(str(name).encode()) % _COLUMNS for name in names}
        self._place = place
        self._scale = np.ones(self._d)
        spread = np.std([self.of(x)[0] for x, _ in events], axis=0)
        self._scale = np.where(spread > 0, spread, 1.0)

    def of(self, x: dict[Any, float]) -> np.ndarray:
        """Return the row of an event, (1, columns)."""
        row = np.zeros((1, self._d))
        for name, value in x.items():
            row[0, self._place[name]] += value
        return row / self._scale


class Asker:
    """A strategy around a classifier, with the interface of River's `active`."""

    def __init__(self, classifier: Any, strategy: Any, events: list[Any], rows: Rows) -> None:
        self.classifier, self._strategy, self._rows = classifier, strategy, rows
        self._labels = sorted({y for _, y in events}, key=str)
        self._told = Told(classes=list(range(len(self._labels))))
        self._x: list[np.ndarray] = []
        self._y: list[int] = []
        self._uses_labels = stream is not None and isinstance(
            strategy, stream.StreamProbabilisticAL
        )

    def predict_one(self, x: dict[Any, Any]) -> tuple[Any, bool]:
        """Return the label predicted, and whether to ask for the right one."""
        predicted = self.classifier.predict_one(x)
        p = self.classifier.predict_proba_one(x)
        row = np.array([[p.get(label, 0.0) for label in self._labels]])
        self._told.row = row if row.any() else np.full(row.shape, 1.0 / row.size)
        return predicted, self._asks(self._rows.of(x))

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn an event."""
        self.classifier.learn_one(x, y)
        if self._uses_labels:
            self._x.append(self._rows.of(x)[0])
            self._y.append(self._labels.index(y))

    def _asks(self, row: np.ndarray) -> bool:
        strategy = self._strategy
        if isinstance(strategy, (stream.StreamRandomSampling, stream.PeriodicSampling)):
            found = strategy.query(row)
            strategy.update(row, found)
            return len(found) > 0
        if self._uses_labels:
            if not self._x:
                return True
            given = {"X": np.array(self._x), "y": np.array(self._y)}
        else:
            given = {}
        found, utilities = strategy.query(row, self._told, return_utilities=True, **given)
        manager = getattr(strategy, "budget_manager_", None)
        takes = isinstance(manager, budgetmanager.BalancedIncrementalQuantileFilter)
        strategy.update(row, found, {"utilities": utilities} if takes else None)
        return len(found) > 0


def _quantile(budget: float, seed: int, n_classes: int) -> Any:
    manager = budgetmanager.BalancedIncrementalQuantileFilter(budget=budget)
    return stream.VariableUncertainty(manager, random_state=seed)


STRATEGIES: dict[str, Callable[[float, int, int], Any]] = {
    "random": lambda b, s, k: stream.StreamRandomSampling(budget=b, random_state=s),
    "periodic": lambda b, s, k: stream.PeriodicSampling(budget=b),
    "fixed uncertainty": lambda b, s, k: stream.FixedUncertainty(
        list(range(k)), budget=b, random_state=s
    ),
    "variable uncertainty": lambda b, s, k: stream.VariableUncertainty(budget=b, random_state=s),
    "randomised uncertainty": lambda b, s, k: stream.RandomVariableUncertainty(
        budget=b, random_state=s
    ),
    "split": lambda b, s, k: stream.Split(budget=b, random_state=s),
    "uncertainty by quantile": _quantile,
    "density": lambda b, s, k: stream.StreamDensityBasedAL(budget=b, random_state=s),
    "cognitive": lambda b, s, k: stream.CognitiveDualQueryStrategyRanVarUn(
        force_full_budget=True, budget=b, random_state=s
    ),
    "probabilistic": lambda b, s, k: stream.StreamProbabilisticAL(
        metric="rbf", budget=b, random_state=s
    ),
}
"""Their names, and functions of the budget, a seed and the number of classes that make them."""
if stream is None:
    STRATEGIES = {}
