"""Sets of labels, or intervals of numbers, that miss a given share of a stream: what a wrapper has.

They are made from what a model predicts, with the thresholds of `confidence.conformal`, and counted
when the truth comes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ClassVar

from streamsvm.confidence import conformal
from streamsvm.confidence.sequence import share_interval
from streamsvm.errors import ParameterError
from streamsvm.model_files.json_values import as_json, checked, checked_scalar, distinct
from streamsvm.support.declaration import as_int

SCORES: dict[str, Callable[[Mapping[Any, float]], dict[Any, float]]] = {
    "least_ambiguous": conformal.least_ambiguous,
    "adaptive": conformal.adaptive,
}

_LATELY = 1000
_SUMS = ("n", "n_missed", "n_new", "n_single", "n_empty", "n_whole", "size")

Full = tuple[Any, ...]


class Given:
    """What was predicted for an event whose label comes later: a label, and the set."""

    __slots__ = ("label", "labels")

    is_asked = True
    """Whether the label is asked for, where there is somebody to ask."""

    def __init__(self, label: Any, labels: Collection[Any]) -> None:
        self.label, self.labels = label, tuple(labels)

    @property
    def further(self) -> dict[str, Any]:
        """What a question says beside the label."""
        return {"set": list(self.labels)}


def told(predicted: Iterable[Any]) -> list[Any]:
    """Return the labels of predictions, of which some may be `Given`."""
    return [one.label if isinstance(one, Given) else one for one in predicted]


class GivenBoth(Given):
    """What two models predicted: the label of the one in use, and both."""

    __slots__ = ()

    @property
    def further(self) -> dict[str, Any]:
        """Nothing more: who is asked need not know of a candidate."""
        return {}


class Sets(ABC):
    """What is predicted with a coverage, and how often that was right.

    Attributes
    ----------
    coverage
        The share of events whose truth is to be in the set.
    n, n_missed, n_new
        Events whose truth came; those of them that were missed; of these, those whose label had
        never been met.
    n_single, n_empty, n_whole
        Sets of one label; empty sets; sets of all labels, or infinite intervals.
    size
        The sum of the sizes of all sets, or of the widths of intervals that are not infinite.
    lately
        Whether each of the last 1,000 events was missed.

    """

    kind = ""
    names: tuple[str, ...] = ()
    """The parameters beside the coverage."""
    steps = conformal.STEPS
    _kinds: ClassVar[dict[str, type[Sets]]] = {}

    def __init_subclass__(cls) -> None:
        Sets._kinds[cls.kind] = cls

    def __init__(self, coverage: float) -> None:
        is_number = isinstance(coverage, (int, float)) and not isinstance(coverage, bool)
        if not (is_number and 0.0 < coverage < 1.0):
            raise ParameterError(
                f"coverage={coverage!r}: use a number between 0 and 1, such as 0.9"
            )
        self.coverage = float(coverage)
        self.n = self.n_missed = self.n_new = self.n_single = self.n_empty = self.n_whole = 0
        self.size = 0.0
        self.lately: deque[bool] = deque(maxlen=_LATELY)

    @abstractmethod
    def of(self, predicted: Any) -> Full:
        """Return the set of a prediction: {label: probability}, or a number."""

    @abstractmethod
    def learn(self, y: Any, predicted: Any, given: Collection[Any]) -> bool:
        """Take the truth of an event, its prediction, and its set; return whether it was missed."""

    @abstractmethod
    def thresholds(self) -> list[conformal.Threshold]:
        """Return the thresholds, each of which has a bound of its own."""

    @property
    def new_threshold(self) -> conformal.Threshold:
        """A threshold that has seen nothing."""
        return conformal.Threshold(1.0 - self.coverage, steps=self.steps)

    def least_coverage(self) -> float:
        """Return what the coverage so far cannot be below, whatever the stream was."""
        above = sum(one.too_many for one in self.thresholds())
        most = (1.0 - self.coverage) * self.n + above + self.n_new
        return max(0.0, 1.0 - most / self.n) if self.n else 0.0

    def figures(self) -> dict[str, float | None]:
        """Return the figures of a monitor's record: see `streamsvm.monitor.report`."""
        n, hits = self.n, self.n - self.n_missed
        low, high = share_interval(hits, n)
        return {
            "coverage_wanted": self.coverage,
            "coverage": hits / n if n else None,
            "coverage_low": low,
            "coverage_high": high,
            "coverage_least": self.least_coverage(),
            "coverage_recent": 1.0 - sum(self.lately) / len(self.lately) if n else None,
            "set_size": self.size / self.n_sized if self.n_sized else None,
            "set_single": self.n_single / n if n else None,
            "set_empty": self.n_empty / n if n else None,
            "set_whole": self.n_whole / n if n else None,
        }

    @property
    def n_sized(self) -> int:
        """How many sets `size` is the sum of."""
        return self.n

    def parameters(self) -> str:
        """Return the parameters as a text, which differs if they do."""
        names = ("coverage", *LabelSets.names)
        return repr([getattr(self, name, None) for name in names])

    # Files

    def as_json(self) -> dict[str, Any]:
        """Return parameters and state as JSON values."""
        sums = {name: getattr(self, name) for name in _SUMS}
        lately = "".join("01"[is_missed] for is_missed in self.lately)
        thresholds = [[one.level, one.deepest, list(one.scores)] for one in self.thresholds()]
        found = {"kind": self.kind, "coverage": self.coverage, "lately": lately}
        return found | sums | {"thresholds": thresholds}

    @staticmethod
    def from_json(content: dict[str, Any]) -> Sets:
        """Return what `as_json` described; raise ValueError if that does not hold together."""
        make = Sets._kinds.get(checked(content.get("kind"), str, "the kind"))
        if make is None:
            raise ValueError("there is no such kind of sets")
        names = ("coverage", *make.names)
        found = make(*(checked_scalar(content.get(name), name) for name in names))
        found.read(content)
        return found

    def read(self, content: dict[str, Any]) -> None:
        """Set the state that `as_json` described."""
        for name in _SUMS[:-1]:
            setattr(self, name, as_int(name, content.get(name), 0))
        self.size = _number(content.get("size"), "size")
        if max(self.n_missed, self.n_single, self.n_empty, self.n_whole) > self.n:
            raise ValueError("there are more of some sets than sets")
        text = checked(content.get("lately"), str, "lately")[-_LATELY:]
        self.lately.extend(c == "1" for c in text)
        if len(self.lately) > self.n or self.n_new > self.n_missed:
            raise ValueError("more events were missed than came")

    def _read_threshold(self, content: Any) -> conformal.Threshold:
        level, deepest, scores = checked(content, list, "a threshold")
        known = [_number(one, "a score", math.inf) for one in checked(scores, list, "the scores")]
        levels = _number(level, "a level"), known, _number(deepest, "a level")
        return conformal.Threshold(1.0 - self.coverage, *levels, self.steps)


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
    names = ("by_class", "score", "may_be_empty")

    def __init__(
        self,
        coverage: float,
        by_class: bool = False,
        score: str = "least_ambiguous",
        may_be_empty: bool = True,
    ) -> None:
        super().__init__(coverage)
        if score not in SCORES:
            raise ParameterError(f"score={score!r}: use one of {', '.join(map(repr, SCORES))}")
        for name, value in (("by_class", by_class), ("may_be_empty", may_be_empty)):
            if not isinstance(value, bool):
                raise ParameterError(f"{name}={value!r}: use True or False")
        self.by_class, self.score, self.may_be_empty = by_class, score, may_be_empty
        self.met: dict[Any, list[int]] = {}
        self._scores_of = SCORES[score]
        self._is_least = score == "least_ambiguous"
        self._is_plain = self._is_least and not by_class
        self._all = self.new_threshold
        self._of_class: dict[Any, conformal.Threshold] = {}

    def of(self, predicted: Mapping[Any, float]) -> Full:
        """Return the labels of a set, the most likely one first."""
        if self._is_plain and (limit := self._all.value) < 1.0:
            found = [y for y, p in predicted.items() if 1.0 - p <= limit]
            if len(found) > 1:
                found.sort(key=predicted.__getitem__, reverse=True)
        else:
            found = self._chosen(predicted)
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
        threshold = self._of_class[y] if self.by_class else self._all
        if self._is_least:
            score = 1.0 - predicted.get(y, 0.0)
        else:
            score = self._scores_of(predicted).get(y, 1.0)
        threshold.learn(score if score == score else 1.0, is_missed, is_new)
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
            self.met[y] = [as_int("a count", n, 0), as_int("a count", missed, 0)]
        if sum(n for n, _ in self.met.values()) != self.n:
            raise ValueError("there are not as many events as labels")
        thresholds = checked(content.get("thresholds"), list, "the thresholds")
        found = [self._read_threshold(one) for one in thresholds]
        if self.by_class:
            self._of_class = dict(zip(labels, found, strict=True))
        else:
            (self._all,) = found


class Intervals(Sets):
    """Intervals of numbers around a prediction, all of one width at a moment."""

    kind = "intervals"

    def __init__(self, coverage: float) -> None:
        super().__init__(coverage)
        self._all = self.new_threshold

    def of(self, predicted: float) -> Full:
        """Return the ends of an interval; both are the prediction where a miss is due."""
        half = max(0.0, self._all.value)
        return predicted - half, predicted + half

    def learn(self, y: float, predicted: float, given: Collection[float]) -> bool:
        """Take the number that came, the one that was predicted, and the interval."""
        low, high = given
        is_missed = not low <= y <= high
        error = abs(y - predicted)
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

    def thresholds(self) -> list[conformal.Threshold]:
        """Return the only threshold."""
        return [self._all]

    @property
    def n_sized(self) -> int:
        """How many intervals were not infinite."""
        return self.n - self.n_whole

    def read(self, content: dict[str, Any]) -> None:
        """Set the state that `as_json` described."""
        super().read(content)
        thresholds = checked(content.get("thresholds"), list, "the thresholds")
        (self._all,) = map(self._read_threshold, thresholds)


def sets_in_words(found: Mapping[str, float | None]) -> str | None:
    """Say how many sets had the label, and how large they were, by `Sets.figures`; None: none."""
    if found.get("coverage") is None:
        return None
    shown = {name: value or 0.0 for name, value in found.items()}
    interval = "{coverage_low:.1%} to {coverage_high:.1%}, at least {coverage_least:.1%}"
    sets = "{set_size:.2f} labels a set; {set_single:.1%} have one, {set_empty:.1%} none"
    return f"{{coverage:.2%}} of {{coverage_wanted:.0%}} ({interval}); {sets}".format(**shown)


def _number(value: Any, what: str, most: float = 1e300) -> float:
    """Return a number of a file, at most `most`."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (is_number and -1e300 <= value <= most):
        raise ValueError(f"{what} is {value!r:.40}, wanted a number")
    return float(value)
