"""Sets of labels, or intervals of numbers, that miss a given share of a stream: what a wrapper has.

They are made from what a model predicts, with the thresholds of `confidence.conformal`, and counted
when the truth comes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from streamsvm.confidence import conformal
from streamsvm.errors import ParameterError
from streamsvm.labels.counted_sets import OF_LABELS, Full, Sets
from streamsvm.model_files.json_values import as_json, checked, distinct
from streamsvm.support.declaration import as_int

SCORES: dict[str, Callable[[Mapping[Any, float]], dict[Any, float]]] = {
    "least_ambiguous": conformal.least_ambiguous,
    "adaptive": conformal.adaptive,
}


class LabelSets(Sets):
    """Sets of labels, the most likely one first.

    Attributes
    ----------
    by_class, score, may_be_empty
        The parameters of `ConformalSets`.
    met
        Each label that was learnt: how often, and how often it was missed.

    """

    kind = "labels"
    names = OF_LABELS
    scores = tuple(SCORES)

    def __init__(
        self,
        coverage: float,
        by_class: bool = False,
        score: str = "least_ambiguous",
        may_be_empty: bool = True,
    ) -> None:
        super().__init__(coverage)
        if score not in self.scores:
            raise ParameterError(f"score={score!r}: use {' or '.join(map(repr, self.scores))}")
        for name, value in (("by_class", by_class), ("may_be_empty", may_be_empty)):
            if not isinstance(value, bool):
                raise ParameterError(f"{name}={value!r}: use True or False")
        self.by_class, self.score, self.may_be_empty = by_class, score, may_be_empty
        self.met: dict[Any, list[int]] = {}
        self._scores_of = SCORES[score]
        self._is_least = score == "least_ambiguous"
        self._is_plain = self._is_least and not by_class
        self._of_class: dict[Any, conformal.Threshold] = {}

    def of(self, predicted: Mapping[Any, float]) -> Full:
        """Return the labels of a set, the most likely one first."""
        if self._is_plain and 0.0 <= (limit := self._all.value) < 1.0:
            found = [y for y, p in predicted.items() if 1.0 - p <= limit]
            if len(found) > 1:
                found.sort(key=predicted.__getitem__, reverse=True)
        else:
            found = self._chosen(predicted) if self.by_class or self._all.value >= 0.0 else []
            found.sort(key=lambda y: predicted.get(y, -1.0), reverse=True)
        if found:
            return tuple(found)
        if self.may_be_empty or not predicted:
            return ()
        return (max(predicted, key=predicted.__getitem__),)

    def _chosen(self, predicted: Mapping[Any, float]) -> list[Any]:
        """Return the labels whose scores are at most their thresholds."""
        scores = dict.fromkeys(self.met, 1.0) | self._scores_of(predicted)
        if not self.by_class:
            limit = self._all.value
            return [y for y, score in scores.items() if score <= limit]
        of_class = self._of_class
        return [y for y, s in scores.items() if y not in of_class or s <= of_class[y].value]

    def learn(self, y: Any, predicted: Mapping[Any, float], given: Collection[Any]) -> bool:
        """Take the label of an event, its probabilities, and its set."""
        is_missed, size, is_new = y not in given, len(given), False
        counts = self.met.get(y)
        if counts is None:
            counts = self.met[y] = [0, 0]
            is_new = is_missed
            self.n_new += is_new
            if self.by_class:
                self._of_class[y] = self.new_threshold
            elif len(self.met) == conformal.MANY + 1:
                self._damp_all()
        threshold = self._of_class[y] if self.by_class else self._all
        if self._is_least:
            score = 1.0 - predicted.get(y, 0.0)
            if not 0.0 <= score <= 1.0:
                score = 1.0 - conformal.probability(predicted[y])
        else:
            score = self._scores_of(predicted).get(y, 1.0)
        if self.delay:
            self._damp(threshold, counts[0] / max(1, self.n) if self.by_class else 1.0)
        threshold.learn(score, is_missed, is_new)
        counts[0] += 1
        self.n += 1
        self.size += size
        if is_missed:
            counts[1] += 1
            self.n_missed += 1
        if size == 1:
            self.n_single += 1
        elif not size:
            self.n_empty += 1
        elif size >= len(self.met):
            self.n_whole += 1
        self.lately.append(is_missed)
        return is_missed

    def rest(self) -> None:
        """Replace the thresholds by those at rest."""
        super().rest()
        self._of_class = {y: one.at_rest() for y, one in self._of_class.items()}

    @property
    def part(self) -> float:
        """The factor of the steps: smaller ones of many labels."""
        is_many = not self.by_class and len(self.met) > conformal.MANY
        return conformal.OF_MANY if is_many else 1.0

    def thresholds(self) -> list[conformal.Threshold]:
        """Return the threshold, or those of the classes."""
        return list(self._of_class.values()) if self.by_class else [self._all]

    def coverage_by_class(self) -> dict[Any, float]:
        """Return the share of the events of each label whose sets had it."""
        return {y: 1.0 - missed / n for y, (n, missed) in self.met.items()}

    def as_json(self) -> dict[str, Any]:
        """Return parameters and state as JSON values."""
        parameters = {name: getattr(self, name) for name in self.names}
        return super().as_json() | parameters | {
            "labels": [as_json(y, "the label") for y in self.met],
            "counts": list(self.met.values()),
        }  # fmt: skip

    def read(self, content: dict[str, Any]) -> None:
        """Set the state that `as_json` described."""
        super().read(content)
        labels = distinct(content.get("labels"), "labels")
        counts = [checked(pair, list, "a count") for pair in content.get("counts", ())]
        for y, (n, missed) in zip(labels, counts, strict=True):
            self.met[y] = [as_int("a count", n, 1), as_int("a count", missed, 0, n)]
        sums = [sum(counts) for counts in zip(*self.met.values(), strict=True)] or [0, 0]
        if sums != [self.n, self.n_missed]:
            raise ValueError("there are not as many events as labels")
        thresholds = checked(content.get("thresholds"), list, "the thresholds")
        counts = list(self.met.values()) if self.by_class else [sums]
        found = [
            self._read_threshold(one, *own) for one, own in zip(thresholds, counts, strict=True)
        ]
        if self.by_class:
            self._of_class = dict(zip(labels, found, strict=True))
        else:
            (self._all,) = found


class Intervals(Sets):
    """Intervals of numbers around a prediction, all of one width at a moment."""

    kind = "intervals"

    def of(self, predicted: float) -> Full:
        """Return the ends of an interval; both are the prediction where a miss is due.

        Where the prediction is no finite number nothing can be said: all numbers are in it.
        """
        if not math.isfinite(predicted):
            return -math.inf, math.inf
        half = max(0.0, self._all.value)
        return predicted - half, predicted + half

    def learn(self, y: float, predicted: float, given: Collection[float]) -> bool:
        """Take the number that came, the one that was predicted, and the interval.

        What is no number is not counted: no interval has it.
        """
        if y != y:
            return False
        low, high = given
        is_missed = not low <= y <= high
        error = abs(y - predicted)
        if self.delay:
            self._damp(self._all)
        self._all.learn(error if error == error else math.inf, is_missed)
        self.n += 1
        self.n_missed += is_missed
        if high - low < math.inf:
            self.size += high - low
        else:
            self.n_whole += 1
        self.n_empty += low == high
        self.lately.append(is_missed)
        return is_missed

    @property
    def n_sized(self) -> int:
        """How many intervals were not infinite."""
        return self.n - self.n_whole

    def read(self, content: dict[str, Any]) -> None:
        """Set the state that `as_json` described."""
        super().read(content)
        (threshold,) = checked(content.get("thresholds"), list, "the thresholds")
        self._all = self._read_threshold(threshold, self.n, self.n_missed)
