"""Labels that come late to a group: each partition has its held events, which go where it goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from connectors.batch import Batch
from connectors.source import topic_and_number
from streamsvm.errors import ParameterError
from streamsvm.run.checkpoint import Peer, arrays_of, named_for
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.late_labels.steps import Steps

_FEWEST_ASTRAY = 10
_MOST_ASTRAY = 0.01
"""So many labels, and this share of all, whose events are in another partition: no accident."""


class GroupLabels:
    """`LateLabels` for a member of a group that keeps its checkpoint where the others' are.

    Events and labels of a key are in partitions of the same number, and one member has both. What
    is held of a partition is kept even when the partition is gone: the member that gets it takes it
    over from the checkpoint that has read it furthest. `late` has the parameters; `most`, and a
    `patience` of further events, count in each partition.
    """

    delay = None  # no labels are simulated

    def __init__(self, late: LateLabels) -> None:
        self._late = late
        self._of: dict[int, LateLabels] = {}  # by number of partition
        self._own: set[int] = set()  # numbers of the partitions that this member has
        self._n_labels = self._n_astray = 0

    def take(self, batch: Batch, labels: Sequence[Any]) -> Steps:
        """Take a batch, as `LateLabels.take`.

        ParameterError: events and labels of a key are in partitions of other numbers.
        """
        number = _number_of(str(batch.file))
        self._own.add(number)
        own = self._of.get(number) or self._of.setdefault(number, self._new())
        self._look_for_strays(batch, number)
        return own.take(batch, labels)

    def _new(self) -> LateLabels:
        given = self._late
        parameters = {"most": given.most, "patience": given.patience, "default": given.default}
        return LateLabels(**parameters, ask=given.ask)

    def _look_for_strays(self, batch: Batch, number: int) -> None:
        others = [self._of[n] for n in self._own if n != number and n in self._of]
        if not others or not batch.are_answers:
            return
        own = self._of[number]
        self._n_labels += len(batch)
        self._n_astray += sum(
            not own.holds(key) and any(other.holds(key) for other in others)
            for key in batch.keys or ()
        )
        if self._n_astray >= max(_FEWEST_ASTRAY, _MOST_ASTRAY * self._n_labels):
            raise ParameterError(
                f"{self._n_astray:,} of {self._n_labels:,} labels have their events in partitions "
                "of other numbers, so that members of a group cannot bring them together: produce "
                "both topics with the same key and partitioner (murmur2_random is Java's), or "
                "learn in one process, without peers (--peers)"
            )

    def end(self) -> Steps:
        """Return nothing: what waits goes on waiting."""
        return iter(())

    # Partitions come and go

    def take_over(
        self, places: Iterable[str], offsets: Mapping[str, int], peers: Iterable[Peer]
    ) -> None:
        """Take what is held of partitions from the member that has read them furthest.

        `places` are those that are assigned now, `offsets` what this member has read.
        """
        numbers: dict[int, list[str]] = {}
        for place in places:
            numbers.setdefault(_number_of(place), []).append(place)
        self._own |= numbers.keys()
        for number, of_number in numbers.items():
            furthest, read = None, sum(offsets.get(place, 0) for place in of_number)
            for peer in peers:
                its = sum(peer.offsets.get(place, 0) for place in of_number)
                if its > read:
                    furthest, read = peer, its
            if furthest is not None:
                self._adopt(number, furthest)

    def _adopt(self, number: int, peer: Peer) -> None:
        late = peer.late or {}
        if "partitions" not in late:
            raise ParameterError(
                f"{peer.name} is of a run without peers (--peers), which does not tell of which "
                "partition its held events are: start all members of a group with them"
            )
        # What became of events is the count of the member that learnt them.
        counted = (self._of.get(number) or self._new()).tallies
        self._of[number] = self._new()
        if (state := late["partitions"].get(str(number))) is not None:
            self._of[number].restore(state, arrays_of(str(number), peer.arrays))
        self._of[number].tallies = counted

    def leave(self, places: Iterable[str]) -> None:
        """Note that partitions are gone; what is held of them is kept for who gets them."""
        self._own.difference_update(map(_number_of, places))

    # As `LateLabels`

    @property
    def counts(self) -> dict[str, int]:
        """The counts of `LateLabels`; held is what is held of this member's partitions."""
        return self._total(lambda one: one.counts)

    @property
    def figures(self) -> dict[str, int]:
        """The figures of `LateLabels`; held is what is held of this member's partitions."""
        return self._total(lambda one: one.figures)

    def _total(self, numbers_of: Callable[[LateLabels], dict[str, int]]) -> dict[str, int]:
        found = Counter(numbers_of(self._new()))
        for number, one in list(self._of.items()):
            own = numbers_of(one)
            found.update({n: c for n, c in own.items() if n not in _HELD or number in self._own})
        return dict(found)

    @property
    def keys(self) -> list[Any]:
        """The keys of events that wait for labels, and of labels that wait for events."""
        return [key for one in self._of.values() for key in one.keys]

    def forget(self, keys: Collection[Any]) -> int:
        """Drop what waits with these keys; return how many events there were."""
        return sum(one.forget(keys) for one in self._of.values())

    def flush(self) -> None:
        """Wait until all questions are where they go to."""
        self._late.flush()

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what is held as JSON values and arrays, for `restore`."""
        found = {number: one.state() for number, one in self._of.items()}
        arrays: dict[str, np.ndarray] = {}
        for number, (_, own) in found.items():
            arrays |= named_for(str(number), own)
        return {"partitions": {str(number): state for number, (state, _) in found.items()}}, arrays

    def restore(self, values: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from what `state` returned."""
        self._of = {int(number): self._new() for number in values["partitions"]}
        for number, one in self._of.items():
            one.restore(values["partitions"][str(number)], arrays_of(str(number), arrays))

    def settings(self) -> dict[str, str]:
        """Return the parameters as texts by name. A resumed run must have the same."""
        return self._late.settings() | {"late by partition (--peers)": "True"}


_HELD = "held", "labels_held", "held_since_labels", "held_events", "held_labels"


def _number_of(place: str) -> int:
    return topic_and_number(place)[1]
