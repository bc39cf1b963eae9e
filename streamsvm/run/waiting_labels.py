"""Labels that wait for events, by key; labels that are simulated to come late; rows that wait."""

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from heapq import heappop, heappush
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.batch import Batch
from streamsvm.errors import ParameterError
from streamsvm.model_files.json_values import as_json

Delay = int | float | timedelta | Callable[[Any], float]


class LabelClock:
    """A queue of events whose labels come a given time after them: see `LateLabels`.

    `seen` events came so far, the last one at the time `now`.
    """

    def __init__(self, delay: Delay | None, moment: str | None) -> None:
        if isinstance(delay, timedelta):
            delay = delay.total_seconds()
        if delay is not None and not callable(delay) and not 0 <= delay < math.inf:
            raise ParameterError(f"delay={delay!r}: use a number of at least 0")
        if moment is not None and delay is None:
            raise ParameterError(f"moment={moment!r} says what delay= is counted in: give both")
        self.delay, self.moment = delay, moment
        self.seen, self.now = 0, 0.0
        self._due: list[tuple[float, int]] = []  # a heap: (when the label comes, number)

    def take(
        self, batch: Batch, first: int
    ) -> tuple[np.ndarray, np.ndarray, list[float], list[float]]:
        """Take a batch of events, which are numbered in their order, from `first` on.

        Returns the steps to take, in order: int64, the number of an event, and bool, whether it is
        learnt now or predicted. An event is learnt before the first later one that comes when its
        label is there, or afterwards. Then, when the label of each event of the batch comes, and
        when the event did.
        """
        times, due = self._times(batch)
        numbers: list[int] = []
        are_learnt: list[bool] = []
        queue = self._due
        for number, (now, label_comes) in enumerate(zip(times, due, strict=True), first):
            while queue and queue[0][0] <= now:
                numbers.append(heappop(queue)[1])
                are_learnt.append(True)
            numbers.append(number)
            are_learnt.append(False)
            heappush(queue, (label_comes, number))
        return np.array(numbers, np.int64), np.array(are_learnt, bool), due, times

    def rest(self) -> list[int]:
        """Return the events that still wait, in the order of their labels, and empty the queue."""
        numbers = [number for _, number in sorted(self._due)]
        self._due = []
        return numbers

    def resume(self, seen: int, now: float, due: list[tuple[float, int]]) -> None:
        """Continue with events that wait: (when the label comes, number)."""
        self.seen, self.now = seen, now
        self._due = [] if self.delay is None else sorted(due)

    def _times(self, batch: Batch) -> tuple[list[float], list[float]]:
        """Return the times at which each row comes, and at which its label comes."""
        n = len(batch)
        moments = np.array([self.now, *self._moments(batch)])
        # An event without a time comes at the time of the event before it.
        last = np.maximum.accumulate(np.where(np.isfinite(moments), np.arange(n + 1), 0))
        times = moments[last][1:]
        if callable(self.delay):
            delays = np.array([float(self.delay(event)) for event in batch.events()])
        else:
            delays = np.full(n, float(self.delay or 0.0))
        self.seen += n
        self.now = float(times[-1]) if n else self.now
        return times.tolist(), (times + delays).tolist()

    def _moments(self, batch: Batch) -> Iterable[float]:
        if self.moment is None:
            return range(self.seen, self.seen + len(batch))
        if self.moment == "timestamp":
            if batch.timestamps is None:
                raise ParameterError("moment='timestamp': the source has none; name its column")
            found: list[float] = batch.timestamps.tolist()
            return found
        moments = [float(event.x.get(self.moment, math.nan)) for event in batch.events()]
        if self.now == 0.0 and not any(map(math.isfinite, moments)):
            raise ParameterError(f"moment={self.moment!r}: no event has such a time so far")
        return moments


class LabelKeys:
    """Pairs labels with events whose keys may come again.

    A key is enough while it is new. Once an event with a key has had its label, a further label may
    be meant for the next event with that key, or be the same label delivered a second time. Then
    the times decide: a label that is older than an event is not its label. Without times such a
    label is passed over while no event waits. A time is NaN where there is none.

    `most` is the largest number of labels that wait, and of keys of events that wait no longer; the
    oldest are forgotten first.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.counts: Counter[str] = Counter()
        # Of each key: its labels and their times, in the order in which they came.
        self._waiting: OrderedDict[Hashable, deque[tuple[Any, float]]] = OrderedDict()
        self._n_waiting = 0
        # Of keys whose labels were forgotten: the time of the latest of these.
        self._forgotten: OrderedDict[Hashable, float] = OrderedDict()
        # Keys of events that wait no longer: whether they got a label, or were given up.
        self._past: OrderedDict[Hashable, bool] = OrderedDict()

    def __len__(self) -> int:
        """Return how many labels wait for their events."""
        return self._n_waiting

    @property
    def waiting(self) -> list[Hashable]:
        """The keys of labels that wait for their events."""
        return list(self._waiting)

    def forget(self, key: Hashable) -> None:
        """Drop the labels of a key that wait."""
        self._n_waiting -= len(self._waiting.pop(key, ()))

    def note(self, key: Hashable, has_label: bool) -> None:
        """Note that an event waits no longer: it got its label, or it was given up."""
        self._past.pop(key, None)
        self._past[key] = has_label
        if len(self._past) > self.most:
            self._past.popitem(last=False)

    def was_given_up(self, key: Hashable) -> bool:
        """Tell whether the last event with a key was given up."""
        return self._past.get(key) is False

    def label_of(self, key: Hashable, moment: float) -> Any:
        """Return the label that came before an event, and forget it; None: there is none."""
        waiting = self._waiting.get(key)
        if waiting is None:
            return None
        is_certain = len(waiting) == 1 and key not in self._past and key not in self._forgotten
        while waiting and not is_certain and waiting[0][1] < moment:
            self._take_first(key)
            self.counts["second_label"] += 1
        return self._take_first(key)[0] if waiting else None

    def is_forgotten(self, key: Hashable, moment: float) -> bool:
        """Tell whether the label of an event came before it, and was forgotten.

        Then labels of this key that still wait are those of later events.
        """
        return moment <= self._forgotten.get(key, -math.inf)

    def _take_first(self, key: Hashable) -> tuple[Any, float]:
        """Remove the label of a key that came first, and return it with its time."""
        waiting = self._waiting[key]
        first = waiting.popleft()
        if not waiting:
            del self._waiting[key]
        self._n_waiting -= 1
        return first

    def is_second(self, key: Hashable, moment: float, event_moment: float | None) -> bool:
        """Tell whether a label can belong to none but an earlier event; count it then.

        `event_moment` is the time of the event that waits under this key; None: no event waits.
        """
        if event_moment is None:
            is_second = self._past.get(key, False) and math.isnan(moment)
        else:
            is_second = key in self._past and moment < event_moment
        self.counts["second_label"] += is_second
        return is_second

    def wait(self, key: Hashable, label: Any, moment: float) -> None:
        """Keep a label until its event comes."""
        if key in self._waiting and math.isnan(moment):
            # Without times the first label counts, as it does after its event.
            self.counts["second_label"] += 1
            return
        self._waiting.setdefault(key, deque()).append((label, moment))
        self._n_waiting += 1
        if self._n_waiting > self.most:
            self._forget(next(iter(self._waiting)))

    def _forget(self, key: Hashable) -> None:
        _, moment = self._take_first(key)
        self.counts["without_event"] += 1
        self._forgotten[key] = max(moment, self._forgotten.pop(key, -math.inf))
        if len(self._forgotten) > self.most:
            self._forgotten.popitem(last=False)

    def state(self) -> dict[str, Any]:
        """Return the labels and keys as JSON values, for `resume`."""
        early = [
            [as_json(key, "the key"), as_json(label, "the label"), moment]
            for key, labels in self._waiting.items()
            for label, moment in labels
        ]
        past = [[as_json(key, "the key"), has_label] for key, has_label in self._past.items()]
        forgotten = [[as_json(key, "the key"), moment] for key, moment in self._forgotten.items()]
        counts = dict(self.counts)
        return {"early": early, "past": past, "forgotten": forgotten, "key_counts": counts}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        self._waiting = OrderedDict()
        for key, label, moment in state["early"]:
            self._waiting.setdefault(key, deque()).append((label, moment))
        self._n_waiting = len(state["early"])
        self._past = OrderedDict(state["past"])
        self._forgotten = OrderedDict(state["forgotten"])
        self.counts = Counter(state["key_counts"])


def times_of(batch: Batch) -> list[float]:
    """Return the time of each row in seconds, NaN where there is none."""
    times = batch.timestamps
    return [math.nan] * len(batch) if times is None else times.tolist()


def rows_of(batch: Batch, labels: Sequence[Any]) -> Iterator[tuple[int, Any, Any, float]]:
    """Return number, key, label and time of each row of a batch with keys."""
    assert batch.keys is not None
    return zip(range(len(batch)), batch.keys, labels, times_of(batch), strict=True)


# Rows that wait for their labels, in Arrow columns: far smaller than dicts


@dataclass(slots=True, eq=False)
class _Part:
    """Rows of one batch, which may be taken or dropped one by one."""

    batch: Batch
    numbers: npt.NDArray[np.int64]  # by which `HeldRows` knows them; increasing
    n_held: int  # the others were taken or dropped
    schema: bytes  # serialised: rows of parts with equal ones can share a batch


class HeldRows:
    """A store of rows; each is known by a number, counted in the order of arrival."""

    def __init__(self) -> None:
        self._part_of: dict[int, _Part] = {}  # by the numbers of the rows held
        self.next_number = 0

    def __len__(self) -> int:
        """Return how many rows are held."""
        return len(self._part_of)

    def add(self, batch: Batch, kept: npt.NDArray[np.int64]) -> list[int]:
        """Store some rows of a batch; return their numbers. The other rows are numbered, too."""
        numbers = self.next_number + kept
        self.next_number += len(batch)
        needed = replace(
            batch, labels=pa.nulls(len(batch)), timestamps=None, keys=None, payloads=None
        )
        # A copy: a slice would keep the whole batch in memory.
        return self._put(needed.take(kept), numbers)

    def _put(self, batch: Batch, numbers: npt.NDArray[np.int64]) -> list[int]:
        schema, names = batch.features.schema.serialize().to_pybytes(), numbers.tolist()
        part = _Part(batch, numbers, len(numbers), schema)
        self._part_of.update(dict.fromkeys(names, part))
        return names

    def take(self, numbers: Sequence[int]) -> Iterator[tuple[Batch, slice]]:
        """Yield rows, in any order, and remove them.

        They come as batches without labels, in the order of `numbers`, each with the slice of
        `numbers` that it holds.
        """
        runs = [(part, [*run]) for part, run in groupby(numbers, self._part_of.__getitem__)]
        start = 0
        for _, same in groupby(runs, lambda run: run[0].schema):
            batch = _gathered([*same])
            yield batch, slice(start, start + len(batch))
            start += len(batch)
        self.drop(numbers)

    def drop(self, numbers: Sequence[int]) -> None:
        """Remove rows."""
        for number in numbers:
            part = self._part_of.pop(number)
            part.n_held -= 1
            if part.n_held and 2 * part.n_held < len(part.numbers):
                # More than half of the memory is of removed rows: copy the others.
                self._shrink(part)

    def _shrink(self, part: _Part) -> None:
        """Leave only those rows in a part that are held."""
        if part.n_held == len(part.numbers):
            return
        held = np.flatnonzero([n in self._part_of for n in part.numbers.tolist()])
        part.batch, part.numbers = part.batch.take(held), part.numbers[held]

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the rows as JSON values, and arrays by name, for `resume`."""
        arrays: dict[str, np.ndarray] = {}
        files: list[Any] = []
        firsts = []
        for part in dict.fromkeys(self._part_of.values()):
            self._shrink(part)
            first = int(part.numbers[0])
            firsts.append(first)
            files.append(part.batch.files or part.batch.file)
            own = part.batch.to_arrays() | {"numbers": part.numbers}
            arrays |= {f"{first}.{name}": array for name, array in own.items()}
        return {"files": files, "firsts": firsts, "next": self.next_number}, arrays

    def resume(self, state: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Replace the rows by those that another store had when its `state` was called."""
        self._part_of, self.next_number = {}, state["next"]
        own: dict[str, dict[str, np.ndarray]] = {}
        for name, array in arrays.items():
            first, _, short = name.partition(".")
            own.setdefault(first, {})[short] = array
        for file, number in zip(state["files"], state["firsts"], strict=True):
            where = {"files" if isinstance(file, list) else "file": file}
            of_part = own[str(number)]
            self._put(replace(Batch.from_arrays(of_part), **where), of_part["numbers"])


def _gathered(runs: list[tuple[_Part, list[int]]]) -> Batch:
    """Return rows of parts of one schema as a batch; a run has the numbers of rows of a part."""
    parts = list(dict.fromkeys(part for part, _ in runs))
    firsts = np.cumsum([0, *(len(part.numbers) for part in parts)]).tolist()
    first_of = dict(zip(parts, firsts, strict=False))
    places = [first_of[part] + np.searchsorted(part.numbers, run) for part, run in runs]
    return Batch.concat([part.batch for part in parts]).take(np.concatenate(places))
