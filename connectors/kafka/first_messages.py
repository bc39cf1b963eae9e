"""What the first messages decide: the type of labels, and which features are numbers."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

_ASKED = 100
_MOST_HELD = 1000
_CLEAR = 20
"""So many more numbers than texts say that a feature is a number."""

_Entry = tuple[int, Any]
Ready = tuple[str, list[_Entry]]
"""A partition, and (offset, content) of messages of it, in order."""

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
        self._labels = self._events = _Decision(vote_of, numbers_of)
        if answers is not None:
            self._events = _Decision(vote_of, numbers_of)

    def _of(self, place: str) -> "_Decision":
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
        return bool(self._labels.held or self._events.held)

    def next_offset(self, place: str) -> int | None:
        """Return the offset after the last message held of a partition; None: there is none."""
        held = self._of(place).held.get(place)
        return held[-1][0] + 1 if held else None

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
        dropped = {place: self._of(place).drop(place) for place in places}
        return {place: held[0][0] for place, held in dropped.items() if held}

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


class _Decision:
    """Holds the first messages with labels back until their type is known.

    Labels of one stream are of one type: true and "true" would be two classes. The type is that of
    most of the first 100 messages with a label, and is known as soon as more than half of those
    have it, after 51 messages if all are alike. It depends on the order of the messages only, not
    on how they are divided into polls. What is held counts as unread: a process that is started
    again reads it again.

    For the content of a message, `vote_of` returns whether it has a label, and of what type, None
    if the message cannot be learnt and so decides nothing; and `numbers_of` which of its features
    are numbers. `known` is the type, once it is decided; `numeric` are the features that are
    numbers in most of the messages by which it was decided.
    """

    def __init__(
        self,
        vote_of: Callable[[Any], tuple[bool, str | None]],
        numbers_of: Callable[[Any], dict[str, bool]],
    ) -> None:
        self.known: str | None = None
        self.numeric: frozenset[str] = frozenset()
        self._vote_of, self._numbers_of = vote_of, numbers_of
        self._forget()

    def _forget(self) -> None:
        self._votes: Counter[str] = Counter()
        self.held: dict[str, list[_Entry]] = {}

    def resume(self, known: str | None, numeric: Iterable[str]) -> None:
        """Continue with the types in a snapshot."""
        self.known, self.numeric = known, frozenset(numeric)
        self._forget()

    def take(self, place: str, messages: Iterable[_Entry]) -> Iterator[Ready]:
        """Take (offset, content) of a partition's messages, and yield those not held any longer."""
        passed: list[_Entry] = []
        for offset, content in messages:
            if self.known is None:
                has_label, kind = self._vote_of(content)
                # Behind a message that is held, all of its partition wait: offsets only grow.
                if has_label or place in self.held:
                    self.held.setdefault(place, []).append((offset, content))
                    self._votes.update([] if kind is None else [kind])
                    if self._is_decided():
                        for other, held in self.decide():
                            if other == place:
                                passed += held
                            else:
                                yield other, held
                    continue
            passed.append((offset, content))
        if passed:
            yield place, passed

    def _is_decided(self) -> bool:
        if sum(map(len, self.held.values())) >= _MOST_HELD:
            return True
        most = max(self._votes.values(), default=0)
        return 2 * most > _ASKED or self._votes.total() >= _ASKED

    def decide(self) -> Iterator[Ready]:
        """Decide by the messages so far, and yield those that were held."""
        if self._votes:
            # Of two types as frequent as each other, the one that came first.
            self.known = self._votes.most_common(1)[0][0]
            balance: Counter[str] = Counter()
            for _, content in (entry for held in self.held.values() for entry in held):
                for name, is_number in self._numbers_of(content).items():
                    balance[name] += 1 if is_number else -1
            self.numeric = frozenset(name for name, more in balance.items() if more >= _CLEAR)
        held = self.held
        self._forget()
        yield from held.items()

    def drop(self, place: str) -> list[_Entry]:
        """Drop what is held of a partition, and return it."""
        dropped = self.held.pop(place, [])
        left = (self._vote_of(content)[1] for held in self.held.values() for _, content in held)
        self._votes = Counter(kind for kind in left if kind is not None)
        return dropped
