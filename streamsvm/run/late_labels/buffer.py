"""Labels that come later than their events: events are held until their labels come.

An event is predicted when it comes, and held with its prediction. When its label comes, that
prediction is scored, and the event is learnt. A label is matched to its event by a key; or labels
are simulated to come a given time after their events (as River's ``stream.simulate_qa`` does).

What is to be done with events is returned as `steps`; the run takes them.
"""

import logging
import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from connectors.batch import Batch
from streamsvm._parameter_checks import check_whole
from streamsvm.errors import ParameterError
from streamsvm.labels.bag_labels import members_of
from streamsvm.labels.given import Given
from streamsvm.labels.label_column import LabelColumn
from streamsvm.model_files.json_values import as_json
from streamsvm.run.late_labels import steps
from streamsvm.run.late_labels.clock import Delay, LabelClock, Order
from streamsvm.run.late_labels.held_rows import HeldRows
from streamsvm.run.late_labels.keys import LabelKeys
from streamsvm.run.late_labels.steps import Steps

_log = logging.getLogger(__name__)


class _Held(NamedTuple):
    """An event that waits for its label; its features are in `HeldRows`, under `number`."""

    number: int
    predicted: Any
    label: Any  # None until it is known; known from the start if the delay is simulated
    due: float  # when a simulated label comes; inf: the label is matched by key
    moment: float = math.nan  # its own time, which decides if keys come again


class LateLabels:
    """A buffer of events that wait for their labels.

    Parameters
    ----------
    delay
        How long after its event a label comes: a number of rows (with `moment`: of seconds), at
        least 0; a timedelta; or a function of the event. None: nothing is simulated; the source
        gives labels apart from events, and they are matched by key (see
        `connectors.kafka.kafka_source.KafkaSource`).
    moment
        How time is measured: None, by row number; ``"timestamp"``, by the source's timestamps in
        seconds; or the name of a feature that holds a time.
    most
        The largest number of held events, and of held labels whose events have not come, at least
        1; 100,000 by default. When there are more, the oldest are given up.
    patience
        Give up an event after this many further events, at least 1, or after this time, a
        timedelta, in the times of events and labels; None: only when more than `most` are held.
        While labels are there that were not read yet, only those count that were: events up to
        the latest one whose label came, and the time of the latest label.
    default
        Events that are given up are learnt with this label (no click, no complaint); None: they are
        only counted.
    ask
        A function that is given each question, ``{"key": ..., "predicted": ..., "x": {...}}``, of
        `ConformalSets` also ``"set"``, for labels that are matched by key:
        `connectors.QuestionTopic`, or your own. If it has a method ``flush``, this is called before
        a checkpoint is written, and at the end.
        With an `ActiveLearner` only these events wait. With `Selective` these are the events
        without an answer, with ``"why"`` and ``"position"``. None: nobody is told.

    Raises
    ------
    ParameterError
        A parameter is out of range.

    Examples
    --------
    >>> from connectors import MemorySource
    >>> from streamsvm import LASVMClassifier
    >>> from streamsvm.run.late_labels import LateLabels
    >>> from streamsvm.run.runner import Run
    >>> events = [({"a": float(i % 7)}, i % 7 > 3) for i in range(200)]
    >>> report = Run(MemorySource(events), LASVMClassifier(), late=LateLabels(delay=30)).execute()
    >>> report.learnt, report.late["held"], 0.8 < report.accuracy < 1.0
    (200, 0, True)

    """

    def __init__(
        self,
        delay: Delay | None = None,
        moment: str | None = None,
        *,
        most: int = 100_000,
        patience: int | timedelta | None = None,
        default: Any = None,
        ask: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        most = check_whole("most", most, 1)
        if isinstance(patience, timedelta):
            if not patience > timedelta(0):
                raise ParameterError(f"patience={patience!r}: use a time above 0")
            if delay is not None and moment is None:
                raise ParameterError(
                    f"patience={patience!r} with a delay of rows: say what time is, moment="
                )
        elif patience is not None:
            patience = check_whole("patience", patience, 1)
        self._clock = LabelClock(delay, moment)
        if ask is not None and delay is not None:
            raise ParameterError(
                f"delay={delay!r}, ask={ask!r}: labels are either simulated or asked for; give one"
            )
        self.delay, self.moment = self._clock.delay, moment
        self.most, self.patience, self.default, self.ask = most, patience, default, ask
        limit = patience.total_seconds() if isinstance(patience, timedelta) else patience
        is_one_unit = isinstance(patience, timedelta) == (moment is not None)
        if limit is not None and is_one_unit and isinstance(self.delay, (int, float)):
            if limit <= self.delay:
                raise ParameterError(
                    f"patience={patience!r} is not more than delay={delay!r}: all events would be "
                    "given up before their labels come"
                )
        self._rows = HeldRows()
        self._held: OrderedDict[Any, _Held] = OrderedDict()
        self._keys = LabelKeys(most)
        self._counts: Counter[str] = Counter()
        # The latest times of events and labels, of labels alone, and the number of the latest
        # event whose label came.
        self._latest = self._latest_label = -math.inf
        self._answered_to = -1
        # The times of events read since the oldest one held, ascending: partitions are read some
        # hundred messages at a time, so that further events are not those read later.
        self._times: list[float] = []
        self._most_times = _FEWEST_TIMES

    @property
    def counts(self) -> dict[str, int]:
        """Counts of events and labels by what became of them.

        ``held``: events that wait for their labels now; ``labels_held``: labels that wait for their
        events now. ``answered``: events that got their label; ``before_event``: those of them whose
        label came before the event. ``never_came``: events that were given up; ``without_event``:
        labels that were given up; ``second_label``: labels of a key whose event had its label
        already, and which are not those of the next event with that key. With an `ActiveLearner`
        also ``not_asked``: events that were not asked for; labels that come for them anyway are
        counted as second ones. So it is with answers of `Selective` that are not checked
        (``audit``); ``abstained``: its events without an answer that `ask` was told. ``too_late``,
        if there are any: labels of events that had been given up.
        """
        names = ("answered", "before_event", "never_came", "without_event", "second_label")
        held = {"held": len(self._held), "labels_held": len(self._keys)}
        for name in ("not_asked", "abstained", "too_late"):
            if name in self._counts:
                held[name] = self._counts[name]
        n_older = sum(one.moment < self._latest_label for one in self._held.values())
        if self.delay is None and self.patience is None and n_older > len(self._held) // 2:
            held["held_since_labels"] = n_older
        return held | {name: self._counts[name] + self._keys.counts[name] for name in names}

    @property
    def figures(self) -> dict[str, int]:
        """How many events and labels wait, and how many labels never came; from any thread."""
        held = {"held_events": len(self._held), "held_labels": len(self._keys)}
        return held | {"labels_never_came": self._counts["never_came"]}

    def take(self, batch: Batch, labels: Sequence[Any]) -> Steps:
        """Take a batch of events, or of labels of earlier ones (`are_answers`), with a label a row.

        Yields what is to be done, each step before the next is known. ParameterError: the source
        has no keys and `delay` is None, or `moment` is ``"timestamp"`` and it has none.
        """
        if self.delay is not None:
            yield from self._take_delayed(batch, labels)
            return
        if batch.keys is None:
            raise ParameterError(
                "labels that come late find their events by key, but the source has no keys: name "
                "the field that is the key, or give delay="
            )
        self._note_times(batch)
        take = self._take_answers if batch.are_answers else self._take_events
        yield from take(batch, labels)
        yield from self._give_up_old(batch.labels_behind)

    def _note_times(self, batch: Batch) -> None:
        if isinstance(self.patience, timedelta) and batch.timestamps is None:
            raise ParameterError(f"patience={self.patience!r}: the source has no times")
        times = [moment for moment in _times_of(batch) if math.isfinite(moment)]
        self._latest = max([self._latest, *times])
        if batch.are_answers:
            self._latest_label = max([self._latest_label, *times])
        elif isinstance(self.patience, int):
            for moment in times:
                insort(self._times, moment)

    def end(self) -> Steps:
        """Learn the events whose simulated labels have not come yet: the source is at its end."""
        answered = [self._held.pop(m) for m in self._clock.rest() if m in self._held]
        self._counts["answered"] += len(answered)
        return self._learn(answered)

    # By key

    def _take_events(self, batch: Batch, labels: Sequence[Any]) -> Steps:
        labels = yield from self._fresh_labels(batch, labels)
        marks = [y if y is _AWAITED or y is _REFUSED else None for y in labels]
        stop, keys = 0, batch.keys or []
        for mark, run in groupby(marks):
            start, stop = stop, stop + len(list(run))
            part = batch.slice(start, stop - start)
            if mark is None:
                yield steps.Feed(part, labels[start:stop])
            elif mark is _AWAITED:
                yield steps.Predict(part, partial(self._hold, part, keys[start:stop]))

    def _hold(
        self,
        batch: Batch,
        keys: Sequence[Any],
        kept: np.ndarray,
        predicted: list[Any],
        is_awaited: np.ndarray,
    ) -> None:
        """Hold those events of a batch whose labels are waited for, and ask: see `Predict`."""
        for i in kept[~is_awaited].tolist():
            # As after its label: a label that comes for this key anyway is not of a later event.
            self._keys.note(keys[i], True)
            self._counts["not_asked"] += 1
        guesses = [guess for guess, waits in zip(predicted, is_awaited, strict=True) if waits]
        kept, times = kept[is_awaited], _times_of(batch)
        numbers = self._rows.add(batch, kept)
        for i, number, guess in zip(kept.tolist(), numbers, guesses, strict=True):
            self._held[keys[i]] = _Held(number, guess, None, math.inf, times[i])
            if self.ask is not None and (not isinstance(guess, Given) or guess.is_asked):
                event = next(iter(batch.slice(i, 1).events()))
                x = {name: value for name, value in event.x.items() if value == value}
                question = question_of(guess)
                if "why" in question:
                    question["position"] = event.position._asdict()
                    self._counts["abstained"] += 1
                self.ask({"key": keys[i], **question, "x": x})

    def _fresh_labels(
        self, batch: Batch, labels: Sequence[Any]
    ) -> Generator[steps.SetAside, None, list[Any]]:
        """Return the label of each event; or `_AWAITED` (unknown), or `_REFUSED` (a bad event)."""
        found: list[Any] = []
        awaited: set[Any] = set()
        for i, key, label, moment in _rows_of(batch, labels):
            if key is None:
                yield steps.SetAside(batch, i, "no key", "the event has no key")
                found.append(_REFUSED)
            elif key in self._held or key in awaited:
                reason = f"key {key!r} is that of an earlier event, whose label did not come yet"
                yield steps.SetAside(batch, i, "duplicate key", reason)
                found.append(_REFUSED)
            elif label is not None:
                found.append(label)
            elif self._keys.is_forgotten(key, moment):
                reason = "its label came before it and was given up: hold more (--hold-most, most=)"
                yield steps.SetAside(batch, i, "label given up", reason)
                found.append(_REFUSED)
            elif (early := self._keys.label_of(key, moment)) is not None:
                self._counts["before_event"] += 1
                self._counts["answered"] += 1
                self._keys.note(key, True)
                self._answered_to = max(self._answered_to, self._rows.next_number)
                found.append(early)
            else:
                awaited.add(key)
                found.append(_AWAITED)
        return found

    def _take_answers(self, batch: Batch, labels: Sequence[Any]) -> Steps:
        answered: list[_Held] = []
        for i, key, label, moment in _rows_of(batch, labels):
            if key is None or label is None:
                what = "key" if key is None else "label"
                yield steps.SetAside(batch, i, f"missing {what}", f"the {what} is missing")
                continue
            held = self._held.get(key)
            if self._keys.is_second(key, moment, None if held is None else held.moment):
                continue
            if held is not None:
                answered.append(self._held.pop(key)._replace(label=label))
                self._answered_to = max(self._answered_to, held.number)
                self._keys.note(key, True)
            else:
                if self._keys.was_given_up(key):
                    self._count_too_late(key)
                self._keys.wait(key, label, moment)
        self._counts["answered"] += len(answered)
        yield from self._learn(answered)

    def _count_too_late(self, key: Any) -> None:
        if not self._counts["too_late"]:
            _log.warning("key %r: its label came after its event was given up", key)
        self._counts["too_late"] += 1

    def _is_over(self, held: _Held, are_behind: bool) -> bool:
        """Tell whether the patience for an event is over, with labels that are `are_behind`."""
        if self.patience is None:
            return False
        if isinstance(self.patience, timedelta):
            now = self._clock.now if self.delay is not None else self._latest
            now = self._latest_label if are_behind else now
            return now - held.moment >= self.patience.total_seconds()
        if not are_behind:
            return held.number < self._rows.next_number - self.patience
        # Events were read faster than labels: those up to the latest label count, by number and,
        # as partitions are read some hundred messages at a time, by their times.
        if held.number >= min(self._rows.next_number, self._answered_to + 1) - self.patience:
            return False
        until = bisect_right(self._times, self._latest_label)
        return (
            not math.isfinite(held.moment)
            or until - bisect_right(self._times, held.moment) >= self.patience
        )

    def _give_up_old(self, are_behind: bool = False) -> Steps:
        """Give up the oldest events while there are too many, or they have waited for too long.

        `are_behind`: there are labels that were not read yet.
        """
        lost: list[_Held] = []
        while self._held:
            key, held = next(iter(self._held.items()))
            if len(self._held) <= self.most and not self._is_over(held, are_behind):
                break
            del self._held[key]
            self._keys.note(key, False)
            lost.append(held._replace(label=self.default))
        if len(self._times) > self._most_times:
            oldest = min((held.moment for held in self._held.values()), default=math.inf)
            del self._times[: bisect_left(self._times, oldest)]
            # Not again before there are twice as many.
            self._most_times = max(_FEWEST_TIMES, 2 * len(self._times))
        self._counts["never_came"] += len(lost)
        if self.default is not None:
            yield from self._learn(lost, are_answers=False)
        else:
            self._rows.drop([held.number for held in lost])
            yield steps.GiveUp(len(lost))

    def _learn(self, events: list[_Held], *, are_answers: bool = True) -> Steps:
        for batch, part in self._rows.take([held.number for held in events]):
            of_batch = events[part]
            ys, predicted = [h.label for h in of_batch], [h.predicted for h in of_batch]
            yield steps.Learn(batch, ys, predicted, are_answers)

    # By delay

    def _take_delayed(self, batch: Batch, labels: Sequence[Any]) -> Steps:
        first = self._rows.next_number
        (numbers, are_learnt), due, times = self._clock.take(batch, first)
        earlier = numbers[numbers < first].tolist()
        # Those that were given up are not held any more.
        held = [self._held.pop(m) for m in earlier if m in self._held]
        place = {h.number: i for i, h in enumerate(held)}
        # The events of all steps: those that were held, then those of the batch.
        events = numbers - first + len(held)
        events[numbers < first] = [place.get(m, -1) for m in earlier]
        order = Order(events, are_learnt).where(events >= 0)
        batches = [part for part, _ in self._rows.take([h.number for h in held])]
        own = LabelColumn.joined([LabelColumn.of([h.label for h in held]), LabelColumn.of(labels)])

        def hold(predicted: np.ndarray, are_good: np.ndarray, is_awaited: np.ndarray) -> None:
            waits = are_good & is_awaited
            self._counts["answered"] += int(waits[order.learnt].sum())
            self._counts["not_asked"] += int(np.count_nonzero(~is_awaited))
            waits[order.learnt] = False
            kept = np.flatnonzero(waits[len(held) :])
            for i, number in zip(kept.tolist(), self._rows.add(batch, kept), strict=True):
                at = len(held) + i
                self._held[number] = _Held(number, predicted[at], own[at], due[i], times[i])

        yield steps.LearnInOrder([*batches, batch], own, [h.predicted for h in held], order, hold)
        yield from self._give_up_old()

    # Forgetting

    @property
    def keys(self) -> list[Any]:
        """The keys of events that wait for labels, and of labels that wait for events."""
        return list(dict.fromkeys([*self._held, *self._keys.waiting]))

    def forget(self, keys: Iterable[Any]) -> int:
        """Drop the events with these keys that wait for labels, and labels that wait for them.

        Returns how many events there were. A label that comes for one of them is not learnt.
        """
        numbers = []
        for key in keys:
            self._keys.forget(key)
            if key in self._held:
                numbers.append(self._held.pop(key).number)
                self._keys.note(key, True)
        self._rows.drop(numbers)
        return len(numbers)

    def holds(self, key: Any) -> bool:
        """Tell whether an event with this key waits for its label."""
        return key in self._held

    @property
    def tallies(self) -> tuple[Counter[str], Counter[str]]:
        """What became of events, and of labels, until now: another buffer may count on from it."""
        return self._counts, self._keys.counts

    @tallies.setter
    def tallies(self, counts: tuple[Counter[str], Counter[str]]) -> None:
        self._counts, self._keys.counts = counts

    def flush(self) -> None:
        """Wait until all questions are where they go to, if that takes time."""
        flush = getattr(self.ask, "flush", None)
        if flush is not None:
            flush()

    # Checkpoints

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the held events and the counts as JSON values and arrays, for `restore`."""
        held = [
            [as_json(key, "the key"), h.number, *_plain(h.predicted, h.label), h.due, h.moment]
            for key, h in self._held.items()
        ]
        self.flush()
        rows, arrays = self._rows.state()
        state = {"held": held, "rows": rows, "counts": dict(self._counts)} | self._keys.state()
        state |= {"seen": self._clock.seen, "now": self._clock.now}
        read = [self._latest, self._latest_label, self._answered_to]
        return state | {"read": read}, arrays | {"times": np.array(self._times)}

    def restore(self, values: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from what `state` returned."""
        self._rows.restore(values["rows"], arrays)
        self._held = OrderedDict((key, _restored(*held)) for key, *held in values["held"])
        self._keys.restore(values)
        due = [(held.due, held.number) for held in self._held.values()]
        self._clock.restore(values["seen"], values["now"], due)
        self._counts = Counter(values["counts"])
        self._latest, self._latest_label, self._answered_to = values["read"]
        self._times = arrays["times"].tolist()

    def settings(self) -> dict[str, str]:
        """Return the parameters as texts by name. A resumed run must have the same."""
        names = ("moment", "most", "patience", "default")
        delay = "a function" if callable(self.delay) else repr(self.delay)
        return {"delay": delay} | {f"late {name}": repr(getattr(self, name)) for name in names}


def _times_of(batch: Batch) -> list[float]:
    """Return the time of each row in seconds, NaN where there is none."""
    times = batch.timestamps
    return [math.nan] * len(batch) if times is None else times.tolist()


def _rows_of(batch: Batch, labels: Sequence[Any]) -> Iterator[tuple[int, Any, Any, float]]:
    """Return number, key, label and time of each row of a batch with keys."""
    assert batch.keys is not None
    return zip(range(len(batch)), batch.keys, labels, _times_of(batch), strict=True)


def question_of(guess: Any) -> dict[str, Any]:
    """Return what a question says of a prediction, and of its set if there is one."""
    if isinstance(guess, Given):
        return question_of(guess.label) | guess.further
    return {"predicted": guess.item() if isinstance(guess, np.generic) else guess}


_FEWEST_TIMES = 1000
"""So many times of events are kept, however few events are held; none of fewer are dropped."""

_AWAITED, _REFUSED = object(), object()
"""Markers in the place of a label."""


def _plain(*labels: Any) -> list[Any]:
    """Return labels as JSON values; a bag of candidates is a list, a `Given` a dict."""
    return [
        [as_json(one, "a candidate") for one in members_of(label)]
        if isinstance(label, frozenset)
        else {"label": _plain(label.label)[0], "set": _plain(*label.labels)}
        if isinstance(label, Given)
        else as_json(label, "the label")
        for label in labels
    ]


def _restored(number: int, predicted: Any, label: Any, *times: float) -> _Held:
    label = frozenset(label) if isinstance(label, list) else label
    if isinstance(predicted, dict):
        predicted = Given(predicted["label"], predicted["set"])
    return _Held(number, predicted, label, *times)
