"""What the first messages decide: the type of labels, and which features are numbers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from connectors.label_type import LabelType, Ready

NO_LABEL = ""
"""The type of label of an event whose label comes apart from it."""


class FirstMessages:
    """Holds the first messages back until it is decided of what types labels and features are.

    Where labels come in a topic of their own, that topic decides the type of labels, and the other
    ones decide which features are numbers, each by its own first messages. Of an event whose label
    comes apart, `vote_of` returns `NO_LABEL` as the type.
    """

    def __init__(
        self,
        vote_of: Callable[[Any], tuple[bool, str | None]],
        numbers_of: Callable[[Any], dict[str, bool]],
        answers: str | None,
    ) -> None:
        self._answers = answers
        self._labels = self._events = LabelType(vote_of, numbers_of)
        if answers is not None:
            self._events = LabelType(vote_of, numbers_of)

    def _of(self, place: str) -> LabelType:
        """Return who decides by the messages of a partition, ``topic[number]``."""
        return self._labels if place.rpartition("[")[0] == self._answers else self._events

    @property
    def type_of_labels(self) -> str | None:
        """The type of labels; None: it is not decided."""
        # Events may have labels although there is a topic for them.
        return self._labels.known or self._events.known or None

    @property
    def numeric(self) -> frozenset[str]:
        """The features that are numbers in most of the messages by which it was decided."""
        return self._events.numeric

    @property
    def is_holding(self) -> bool:
        """Whether a message is held."""
        return self._labels.is_holding or self._events.is_holding

    def next_offset(self, place: str) -> int | None:
        """Return the offset after the last message held of a partition; None: there is none."""
        return self._of(place).next_offset(place)

    def take(self, place: str, messages: Iterable[tuple[int, Any]]) -> Iterator[Ready]:
        """Take (offset, content) of messages, and yield those that need not be held any longer."""
        return self._of(place).take(place, messages)

    def end(self) -> Iterator[Ready]:
        """Decide by the messages so far, and yield those that are held."""
        # The second one has nothing left to yield if both are one.
        yield from self._events.decide()
        yield from self._labels.decide()

    def drop(self, places: Iterable[str]) -> dict[str, int]:
        """Drop what is held of partitions; return the first offset dropped of each."""
        return {p: n for place in places for p, n in self._of(place).drop([place]).items()}

    def snapshot(self) -> dict[str, Any]:
        """Return what is decided, as JSON values."""
        found = {"labels": self._labels.known, "numbers": sorted(self._events.numeric)}
        return found if self._labels is self._events else found | {"events": self._events.known}

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from what `snapshot` returned; older snapshots hold less."""
        numbers = snapshot.get("numbers", ())
        if self._labels is not self._events:
            self._events.resume(snapshot.get("events"), numbers)
        self._labels.resume(snapshot.get("labels"), numbers)
