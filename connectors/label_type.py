"""The type of a stream's labels, decided by the majority of its first messages, not by one."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_ASKED = 100
_MOST_HELD = 1000
_CLEAR = 20
"""So many more numbers than texts say that a feature is a number."""

_Entry = tuple[int, Any]
Ready = tuple[str, list[_Entry]]
"""A partition, and (offset, content) of messages of it, in order."""


class LabelType:
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
        numbers_of: Callable[[Any], dict[str, bool]] = lambda content: {},
    ) -> None:
        self.known: str | None = None
        self.numeric: frozenset[str] = frozenset()
        self._vote_of, self._numbers_of = vote_of, numbers_of
        self._forget()

    def _forget(self) -> None:
        self._votes: Counter[str] = Counter()
        self._held: dict[str, list[_Entry]] = {}

    def resume(self, known: str | None, numeric: Iterable[str] = ()) -> None:
        """Continue with the types in a snapshot."""
        self.known, self.numeric = known, frozenset(numeric)
        self._forget()

    @property
    def is_holding(self) -> bool:
        """Whether a message is held."""
        return bool(self._held)

    def next_offset(self, place: str) -> int | None:
        """Return the offset after the last message held of a partition; None: there is none."""
        return self._held[place][-1][0] + 1 if place in self._held else None

    def take(self, place: str, messages: Iterable[_Entry]) -> Iterator[Ready]:
        """Take (offset, content) of a partition's messages, and yield those not held any longer."""
        passed: list[_Entry] = []
        for offset, content in messages:
            if self.known is None:
                has_label, kind = self._vote_of(content)
                # Behind a message that is held, all of its partition wait: offsets only grow.
                if has_label or place in self._held:
                    self._held.setdefault(place, []).append((offset, content))
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
        if sum(map(len, self._held.values())) >= _MOST_HELD:
            return True
        most = max(self._votes.values(), default=0)
        return 2 * most > _ASKED or self._votes.total() >= _ASKED

    def decide(self) -> Iterator[Ready]:
        """Decide by the messages so far, and yield those that were held."""
        if self._votes:
            # Of two types as frequent as each other, the one that came first.
            self.known = self._votes.most_common(1)[0][0]
            self.numeric = self._numeric()
        held = self._held
        self._forget()
        yield from held.items()

    def _numeric(self) -> frozenset[str]:
        """Return the features that are numbers in most of the messages that are held."""
        balance: Counter[str] = Counter()
        for _, content in (entry for held in self._held.values() for entry in held):
            for name, is_number in self._numbers_of(content).items():
                balance[name] += 1 if is_number else -1
        return frozenset(name for name, more in balance.items() if more >= _CLEAR)

    def drop(self, places: Iterable[str]) -> dict[str, int]:
        """Drop what is held of partitions; return the first offset dropped of each."""
        firsts = {}
        for place in places:
            if held := self._held.pop(place, []):
                firsts[place] = held[0][0]
        left = (self._vote_of(content)[1] for held in self._held.values() for _, content in held)
        self._votes = Counter(kind for kind in left if kind is not None)
        return firsts
