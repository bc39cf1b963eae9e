"""Labels that find their events by keys: those that wait, and keys that come again."""

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable
from typing import Any

from streamsvm.model_files.json_values import as_json


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

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        self._waiting = OrderedDict()
        for key, label, moment in state["early"]:
            self._waiting.setdefault(key, deque()).append((label, moment))
        self._n_waiting = len(state["early"])
        self._past = OrderedDict(state["past"])
        self._forgotten = OrderedDict(state["forgotten"])
        self.counts = Counter(state["key_counts"])
