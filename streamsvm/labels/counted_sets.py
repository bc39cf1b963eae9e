"""What sets of labels and intervals share: counts, what waits for labels, figures, files."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from streamsvm.confidence import conformal
from streamsvm.confidence.sequence import share_interval
from streamsvm.errors import ParameterError
from streamsvm.model_files.json_values import checked, checked_number, checked_scalar
from streamsvm.support.declaration import as_int

OF_LABELS = ("by_class", "score", "may_be_empty")
"""The parameters of sets of labels beside the coverage."""

_LATELY = 1000
# A delay is taken to be larger than the one seen by this, and to fall by so much an event.
_MARGIN, _SOONER = 1.1, 0.1
_MOST_WAITING = 10_000
_SUMS = ("n", "n_missed", "n_new", "n_single", "n_empty", "n_whole", "size")

Full = tuple[Any, ...]


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
    n_waiting
        Sets that were given for events whose labels did not come yet.
    delay
        How many waited lately; 0 if labels come at once.

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
        if coverage > conformal.MOST_COVERAGE:
            raise ParameterError(
                f"coverage={coverage!r}: use at most {conformal.MOST_COVERAGE}: a higher one would "
                "need more than 10,000 scores"
            )
        self.coverage = float(coverage)
        self.n = self.n_missed = self.n_new = self.n_single = self.n_empty = self.n_whole = 0
        self.size = 0.0
        self.lately: deque[bool] = deque(maxlen=_LATELY)
        self.n_waiting, self.delay = 0, 0.0
        # The threshold of all events: `thresholds` may be others.
        self._all = self.new_threshold
        # Whether no set was given since the last late label, and how many waited after it.
        self._is_crowd, self._n_waited = False, -1

    @abstractmethod
    def of(self, predicted: Any) -> Full:
        """Return the set of a prediction: {label: probability}, or a number."""

    @abstractmethod
    def learn(self, y: Any, predicted: Any, given: Collection[Any]) -> bool:
        """Take the truth of an event, its prediction, and its set; return whether it was missed."""

    def thresholds(self) -> list[conformal.Threshold]:
        """Return the thresholds, each of which has a bound of its own."""
        return [self._all]

    def at_rest(self) -> Sets:
        """Return sets of a model that does not learn: thresholds are quantiles at the coverage."""
        found = copy.copy(self)
        found.rest()
        return found

    def rest(self) -> None:
        """Replace the thresholds by those at rest."""
        self._all = self._all.at_rest()

    def wait(self) -> None:
        """Take that a set is given while others wait."""
        self.n_waiting = min(self.n_waiting, _MOST_WAITING)
        if self.n_waiting > max(self.delay, conformal.AT_ONCE):
            self.delay = _MARGIN * self.n_waiting
            self._damp_all()

    def came_late(self) -> None:
        """Take that the label comes that is learnt next; its set was given earlier."""
        self._is_crowd = self.delay > 0.0 and self.n_waiting == self._n_waited
        self.n_waiting = self._n_waited = max(0, self.n_waiting - 1)

    def give_up(self, n: int = 1) -> None:
        """Take that nobody waits any more for the labels of so many events."""
        self.n_waiting = max(0, self.n_waiting - n)

    def _damp(self, threshold: conformal.Threshold, share: float = 1.0) -> None:
        """Prepare a threshold, which is that of a share of all events, for a label."""
        if self.n_waiting < self.delay:
            self.delay -= _SOONER
            if self.delay <= conformal.AT_ONCE:
                self.delay = 0.0
                self._damp_all()
        threshold.damp(share * self.delay, self.part, self._is_crowd)
        self._is_crowd = False

    def _damp_all(self) -> None:
        for one in self.thresholds():
            one.damp(self.delay, self.part)

    @property
    def part(self) -> float:
        """The factor of the steps."""
        return 1.0

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
        """Return the figures of a monitor's record: see `streamsvm.monitor.figures`."""
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
        names = ("coverage", *OF_LABELS)
        return repr([getattr(self, name, None) for name in names])

    # Files

    def as_json(self) -> dict[str, Any]:
        """Return parameters and state as JSON values."""
        sums = {name: getattr(self, name) for name in _SUMS}
        lately = "".join("01"[is_missed] for is_missed in self.lately)
        found = {"kind": self.kind, "coverage": self.coverage, "lately": lately} | sums
        found["thresholds"] = [
            [one.level, one.deepest, list(one.scores), one.forgiven, one.delay]
            for one in self.thresholds()
        ]
        found["waiting"] = [self.n_waiting, self._n_waited, self.delay]
        return found

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
        self.size = checked_number(content.get("size"), "size", least=0.0)
        is_missed_less = self.n_new <= self.n_missed <= self.n
        if not is_missed_less or self.n_single + self.n_empty + self.n_whole > self.n:
            raise ValueError("there are more of some sets than sets")
        waiting, waited, delay = checked(content.get("waiting"), list, "waiting")
        self.n_waiting = as_int("n_waiting", waiting, 0, _MOST_WAITING)
        self._n_waited = as_int("n_waited", waited, -1, _MOST_WAITING)
        self.delay = checked_number(delay, "delay", _MARGIN * _MOST_WAITING, 0.0)
        text = checked(content.get("lately"), str, "lately")[-_LATELY:]
        self.lately.extend(c == "1" for c in text)
        if len(self.lately) > self.n or sum(self.lately) > self.n_missed:
            raise ValueError("more events were missed than came")

    def _read_threshold(self, content: Any, n: int, n_missed: int) -> conformal.Threshold:
        """Return a threshold that saw so many events, and misses."""
        level, deepest, scores, forgiven, delay = checked(content, list, "a threshold")
        scores = checked(scores, list, "the scores")
        known = [checked_number(one, "a score", math.inf, -math.inf) for one in scores]
        a, step = 1.0 - self.coverage, (1.0 - self.coverage) / self.steps
        least, most = a - step * (n_missed + 1), a + step * (n + 1)
        levels = checked_number(level, "a level", most, least), known
        lowest = checked_number(deepest, "a level", 0.0, min(least, -step))
        forgiven = checked_number(forgiven, "forgiven", n_missed, 0.0)
        found = conformal.Threshold(a, *levels, lowest, forgiven, steps=self.steps)
        found.damp(checked_number(delay, "delay", _MARGIN * _MOST_WAITING, 0.0), self.part)
        return found


def sets_in_words(found: Mapping[str, float | None]) -> str | None:
    """Say how many sets had the label, and how large they were, by `Sets.figures`; None: none."""
    if found.get("coverage") is None:
        return None
    shown = {name: value or 0.0 for name, value in found.items()}
    interval = "{coverage_low:.1%} to {coverage_high:.1%}, at least {coverage_least:.1%}"
    wanted = f"{100.0 * shown['coverage_wanted']:.6g}%"
    sets = "{set_size:.2f} labels a set; {set_single:.1%} have one, {set_empty:.1%} none"
    return f"{{coverage:.2%}} of {wanted} ({interval}); {sets}".format(**shown)
