"""What the first messages decide: the type of labels, and which features are numbers."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from connectors.source import topic_and_number

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

    Labels of one stream are of one type: true and "true" would be two classes. The type is that of
    most of the first 100 messages with a label, and is known as soon as more than half of those
    have it, after 51 messages if all are alike. It depends on the order of the messages only, not
    on how they are divided into polls. What is held counts as unread: a process that is started
    again reads it again.

    For the content of a message, `vote_of` returns whether it has a label, and of what type, None
    if the message cannot be learnt and so decides nothing; and `numbers_of` which of its features
    are numbers. `numeric` are the features that are numbers in most of the messages by which it was
    decided, `textual` those that are texts.

    Where labels come in a topic of their own, `answers`, that topic decides the type of labels, and
    the other ones decide which features are numbers, each by its own first messages. Of an event
    whose label comes apart, `vote_of` returns `NO_LABEL` as the type.
    """

    def __init__(
        self,
        vote_of: Callable[[Any], tuple[bool, str | None]],
        numbers_of: Callable[[Any], dict[str, bool]],
        answers: str | None,
    ) -> None:
        self._vote_of, self._numbers_of, self._answers = vote_of, numbers_of, answers
        self.numeric: frozenset[str] = frozenset()
        self.textual: frozenset[str] = frozenset()
        # The type of labels, once it is decided: of the topic of labels (True), and of all others.
        self._known: dict[bool, str | None] = {True: None, False: None}
        self._forget()

    def _forget(self) -> None:
        self._votes: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
        self._held: dict[str, list[_Entry]] = {}  # by partition

    def _is_of_labels(self, place: str) -> bool:
        """Tell whether a partition, ``topic[number]``, is one of the topic of labels."""
        return topic_and_number(place)[0] == self._answers

    def _held_of(self, of_labels: bool) -> dict[str, list[_Entry]]:
        return {p: held for p, held in self._held.items() if self._is_of_labels(p) == of_labels}

    @property
    def type_of_labels(self) -> str | None:
        """The type of labels; None: it is not decided."""
        # Events may have labels although there is a topic for them.
        return self._known[True] or self._known[False] or None

    def is_decided(self, place: str) -> bool:
        """Tell whether nothing of a partition needs to be held any longer."""
        return self._known[self._is_of_labels(place)] is not None

    @property
    def is_holding(self) -> bool:
        """Whether a message is held."""
        return bool(self._held)

    def next_offset(self, place: str) -> int | None:
        """Return the offset after the last message held of a partition; None: there is none."""
        held = self._held.get(place)
        return held[-1][0] + 1 if held else None

    def take(self, place: str, messages: Iterable[_Entry]) -> Iterator[Ready]:
        """Take (offset, content) of messages, and yield those that need not be held any longer."""
        passed: list[_Entry] = []
        of_labels = self._is_of_labels(place)
        for offset, content in messages:
            if self._known[of_labels] is None:
                has_label, kind = self._vote_of(content)
                # Behind a message that is held, all of its partition wait: offsets only grow.
                if has_label or place in self._held:
                    self._held.setdefault(place, []).append((offset, content))
                    self._votes[of_labels].update([] if kind is None else [kind])
                    if self._can_be_decided(of_labels):
                        for other, held in self._decide(of_labels):
                            if other == place:
                                passed += held
                            else:
                                yield other, held
                    continue
            passed.append((offset, content))
        if passed:
            yield place, passed

    def _can_be_decided(self, of_labels: bool) -> bool:
        if sum(map(len, self._held_of(of_labels).values())) >= _MOST_HELD:
            return True
        votes = self._votes[of_labels]
        return 2 * max(votes.values(), default=0) > _ASKED or votes.total() >= _ASKED

    def _decide(self, of_labels: bool) -> Iterator[Ready]:
        """Decide by the messages so far, and yield those that were held."""
        held, votes = self._held_of(of_labels), self._votes[of_labels]
        if votes:
            # Of two types as frequent as each other, the one that came first.
            self._known[of_labels] = votes.most_common(1)[0][0]
        if votes and not of_labels:
            balance: Counter[str] = Counter()
            for _, content in chain.from_iterable(held.values()):
                for name, is_number in self._numbers_of(content).items():
                    balance[name] += 1 if is_number else -1
            self.numeric = frozenset(name for name, more in balance.items() if more >= _CLEAR)
            self.textual = frozenset(name for name, more in balance.items() if more <= -_CLEAR)
        self._votes[of_labels] = Counter()
        for place in held:
            del self._held[place]
        yield from held.items()

    def end(self) -> Iterator[Ready]:
        """Decide by the messages so far, and yield those that are held."""
        yield from self._decide(False)
        yield from self._decide(True)

    def drop(self, places: Iterable[str]) -> dict[str, int]:
        """Drop what is held of partitions; return the first offset dropped of each."""
        dropped = {place: self._held.pop(place, []) for place in places}
        for of_labels in {self._is_of_labels(place) for place in dropped}:
            left = chain.from_iterable(self._held_of(of_labels).values())
            kinds = (self._vote_of(content)[1] for _, content in left)
            self._votes[of_labels] = Counter(kind for kind in kinds if kind is not None)
        return {place: held[0][0] for place, held in dropped.items() if held}

    def snapshot(self) -> dict[str, Any]:
        """Return what is decided, as JSON values."""
        found: dict[str, Any] = {"labels": self._known[self._answers is not None]}
        found |= {"numbers": sorted(self.numeric), "texts": sorted(self.textual)}
        return found if self._answers is None else found | {"events": self._known[False]}

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from what `snapshot` returned; older snapshots hold less."""
        self.numeric = frozenset(snapshot.get("numbers", ()))
        self.textual = frozenset(snapshot.get("texts", ()))
        self._known[False] = snapshot.get("events")
        self._known[self._answers is not None] = snapshot.get("labels")
        self._forget()
