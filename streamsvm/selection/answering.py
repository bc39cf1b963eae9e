"""Whether to answer an event or to leave it to somebody else, and what became of the answers.

The rule and what it promises are in `streamsvm.confidence.selective`.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from streamsvm._parameter_checks import check_number, check_seed
from streamsvm.confidence.selective import DOUBTS, Evidence, Guard
from streamsvm.confidence.sequence import share_interval
from streamsvm.errors import ParameterError
from streamsvm.labels.given import Given
from streamsvm.model_files.json_values import checked, checked_scalar, draws_as_json, set_draws
from streamsvm.support.declaration import as_float, as_int
from streamsvm.support.locked import Locked, guarded, locked

LEAST_ERROR, MOST_ERROR = 1e-4, 0.5

_LATELY = 1000
_PARAMETERS = ("error", "level", "audit", "seed")
_COUNTED = ("n_seen", "n_answered", "n_held", "n_audited", "n_labelled")
_OF_GUARD = ("n", "n_wrong", "n_openings", "n_late")


class Answer(NamedTuple):
    """What was said of an event: give it back with the label, if that comes later."""

    label: Any  # None: there is no answer
    likely: Any  # the most likely label; None: no label was known
    place: int  # in `DOUBTS`; -1: no label was known
    is_sure: bool  # the evidence is for an answer
    is_held: bool  # the guard is closed
    is_audited: bool  # no answer, to see what it would have been worth

    @property
    def why(self) -> str:
        """Why there is no answer: "unsure", "held" or "audit"; else ""."""
        if self.label is not None:
            return ""
        if self.is_audited:
            return "audit"
        return "held" if self.is_sure and self.is_held else "unsure"


class GivenAnswer(Given):
    """An `Answer` whose label comes later: `label` is the most likely one, `labels` its values."""

    __slots__ = ()

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.likely, answer)

    @property
    def is_asked(self) -> bool:  # type: ignore[override]
        """Whether there is no answer."""
        return self.labels[0] is None

    @property
    def further(self) -> dict[str, Any]:
        """Why there is no answer."""
        return {"why": Answer(*self.labels).why}


class Answering(Locked):
    """Decides which events of a stream are answered, and counts how that went.

    Attributes
    ----------
    error, level, audit, seed
        The parameters of `Selective`.
    n_seen, n_answered
        Events that came, and those of them that were answered.
    n_held, n_audited
        Events that were not answered though the evidence was for it, as the guard was closed; and
        those that would have been answered, but were drawn to be looked at.
    n_labelled
        Events whose label came.
    evidence, guard
        See `streamsvm.confidence.selective`.

    """

    def __init__(
        self,
        error: float = 0.02,
        level: float = 0.95,
        audit: float = 0.0,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.error = check_number("error", error, LEAST_ERROR, MOST_ERROR)
        is_number = isinstance(level, (int, float)) and not isinstance(level, bool)
        if not (is_number and 0.0 < level < 1.0):
            raise ParameterError(f"level={level!r}: use a number between 0 and 1, such as 0.95")
        self.level, self.audit = float(level), check_number("audit", audit, 0.0, 1.0)
        self.seed = check_seed(seed)
        self.n_seen = self.n_answered = self.n_held = self.n_audited = self.n_labelled = 0
        self.evidence, self.guard = Evidence(self.error, self.level), Guard(self.error)
        self._draws = random.Random(seed)
        # Of the last events whether each was answered; of the last answers whether it was wrong.
        self._lately: deque[bool] = deque(maxlen=_LATELY)
        self._wrong_lately: deque[bool] = deque(maxlen=_LATELY)

    def answer(self, p: Mapping[Any, float]) -> Answer:
        """Return what is said of an event, {label: probability}, without counting it."""
        if not p:
            return Answer(None, None, -1, False, self.guard.is_closed, False)
        likely = max(p, key=p.__getitem__)
        doubt, guard = 1.0 - p[likely], self.guard
        # Of NaN, and of what is above 1 by rounding, too.
        place = bisect_left(DOUBTS, doubt) if doubt < 1.0 else len(DOUBTS) - 1
        evidence = self.evidence
        is_sure = place <= (evidence.usual if guard.has_reserve else evidence.careful)
        is_held = guard.is_closed
        return Answer(likely if is_sure and not is_held else None, likely, place, is_sure, is_held,
                      False)  # fmt: skip

    @guarded
    def next(self, p: Mapping[Any, float]) -> Answer:
        """Return what is said of the next event, and count it."""
        found = self.answer(p)
        if self.audit and self._draws.random() < self.audit:
            self.n_audited += found.label is not None
            found = found._replace(label=None, is_audited=True)
        elif found.label is not None:
            self.n_answered += 1
        elif found.is_sure:
            self.n_held += 1
        self.n_seen += 1
        self._lately.append(found.label is not None)
        return found

    @guarded
    def learn(self, y: Any, given: Answer) -> None:
        """Take the label of an event, and what was said of it."""
        self.n_labelled += 1
        if given.place < 0 or (self.audit and not given.is_audited):
            return
        # Not NumPy's, which files cannot hold.
        is_wrong = bool(y != given.likely)
        if given.is_sure:
            if given.is_held:
                self.guard.learn_held(is_wrong)
            else:
                self.guard.learn(is_wrong)
                self._wrong_lately.append(is_wrong)
        self.evidence.learn(given.place, is_wrong)

    # Figures

    @locked
    def figures(self) -> dict[str, float | None]:
        """Return the figures of a monitor's record: see `streamsvm.monitor.figures`."""
        n, guard, lately = self.n_seen, self.guard, self._wrong_lately
        low, high = share_interval(guard.n_wrong, guard.n, self.level)
        return {
            "answered_error_wanted": self.error,
            "answered": self.n_answered / n if n else None,
            "answered_recent": sum(self._lately) / len(self._lately) if self._lately else None,
            "answered_error": guard.n_wrong / guard.n if guard.n else None,
            "answered_error_low": low,
            "answered_error_high": high,
            "answered_error_most": min(1.0, guard.most_wrong / guard.n) if guard.n else None,
            "answered_error_recent": sum(lately) / len(lately) if lately else None,
            "answers_held": float(guard.is_closed),
            "unanswered_error": self.evidence.error_of_all(),
        }

    @property
    def counts(self) -> dict[str, int]:
        """How many events there were of each kind, by name."""
        found = {name: getattr(self, name) for name in _COUNTED}
        guard = self.guard
        return found | {"n_checked": guard.n, "n_wrong": guard.n_wrong,
                        "n_openings": guard.n_openings}  # fmt: skip

    def parameters(self) -> str:
        """Return the parameters as a text, which differs if they do."""
        return repr([getattr(self, name) for name in _PARAMETERS])

    # Files

    @locked
    def as_json(self) -> dict[str, Any]:
        """Return parameters and state as JSON values."""
        evidence, guard = self.evidence, self.guard
        content = {name: getattr(self, name) for name in (*_PARAMETERS, *_COUNTED)}
        return content | {
            "guard": [getattr(guard, name) for name in _OF_GUARD],
            "is_closed": guard.is_closed,
            "credit": guard.credit,
            "places": [evidence.usual, evidence.careful],
            "counts": evidence.counts.tolist(),
            "filled": evidence.filled,
            "new": evidence.new,
            "lately": _as_text(self._lately),
            "wrong_lately": _as_text(self._wrong_lately),
            "draws": draws_as_json(self._draws) if self.audit else None,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Answering:
        """Return what `as_json` described; raise ValueError if that does not hold together."""
        found = cls(**{name: checked_scalar(content.get(name), name) for name in _PARAMETERS})
        found.read(content)
        return found

    def read(self, content: dict[str, Any]) -> None:
        """Set the state that `as_json` described."""
        for name in _COUNTED:
            setattr(self, name, as_int(name, content.get(name), 0))
        guard, evidence, last = self.guard, self.evidence, len(DOUBTS) - 1
        given = checked(content.get("guard"), list, "the guard")
        for name, value in zip(_OF_GUARD, given, strict=True):
            setattr(guard, name, as_int(name, value, 0, self.n_labelled))
        if max(guard.n_wrong, guard.n_late) > guard.n or self.n_answered > self.n_seen:
            raise ValueError("there are more answers than events")
        if guard.n_openings > math.log2(1.0 + self.error * self.n_labelled) + 1e-9:
            raise ValueError("the guard opened more often than it can")
        guard.is_closed = checked(content.get("is_closed"), bool, "is_closed")
        guard.credit = as_float("credit", content.get("credit"))
        if not 0.0 <= guard.credit <= 2.0**guard.n_openings:
            raise ValueError("credit is more than opens the guard")
        places = [as_int("a place", one, -1, last) for one in content.get("places", ())]
        evidence.usual, evidence.careful = places
        _fill(evidence.counts, content.get("counts"))
        filled = checked(content.get("filled"), list, "filled")
        sizes = zip(filled, evidence.sizes, strict=True)
        evidence.filled = [as_int("filled", one, 0, size) for one, size in sizes]
        new = checked(content.get("new"), list, "new")
        evidence.new = [as_int("an event", one, 0, 2 * last + 1) for one in new]
        self._lately.extend(_of_text(content.get("lately")))
        self._wrong_lately.extend(_of_text(content.get("wrong_lately")))
        if (draws := content.get("draws")) is not None:
            set_draws(self._draws, draws)


def _fill(counts: Any, given: Any) -> None:
    """Set counts from nested lists of the same shape."""
    if counts.ndim == 0:
        raise ValueError("counts are no lists")
    rows = checked(given, list, "counts")
    if len(rows) != len(counts):
        raise ValueError("counts are of another shape")
    for i, row in enumerate(rows):
        if counts.ndim == 1:
            counts[i] = as_int("a count", row, 0)
        else:
            _fill(counts[i], row)


def _as_text(flags: deque[bool]) -> str:
    return "".join("01"[flag] for flag in flags)


def _of_text(text: Any) -> list[bool]:
    return [c == "1" for c in checked(text, str, "flags")[-_LATELY:]]


def answers_in_words(found: Mapping[str, float | None]) -> str | None:
    """Say how many events were answered, and how well, by `Answering.figures`; None: none came."""
    if found.get("answered") is None:
        return None
    shown = {name: value or 0.0 for name, value in found.items()}
    text = "{answered:.2%} (of late {answered_recent:.1%})"
    if found["answered_error"] is None:
        return f"{text}: {_why_none(found)}".format(**shown)
    text += "; {answered_error:.2%} of answers wrong, wanted at most {answered_error_wanted:.2%}"
    text += " ({answered_error_low:.2%} to {answered_error_high:.2%} at all moments)"
    return (text + "; answers are held back now" * bool(shown["answers_held"])).format(**shown)


def _why_none(found: Mapping[str, float | None]) -> str:
    """Say why there are no figures of answers yet, and what would help."""
    if found["answered"]:
        return "no answer was checked yet"
    wanted, error = found["answered_error_wanted"] or 1.0, found["unanswered_error"]
    least = 13.0 / wanted
    text = f"to begin takes some {least:,.0f} labelled events of high confidence without a mistake"
    if error is None:
        return f"{text}, and more with some"
    return (
        f"{text}, and more with some; of all, {1.0 - error:.1%} would have been right of late: a "
        "larger error (--error), more events, or a better model would help"
    )
