"""How many messages are read at once, by their bytes: decoded, they take several times as much."""

from collections.abc import Iterator, Sequence
from typing import Any

from connectors.kafka.messages import Message
from connectors.source import Reject

_MOST_BYTES = 8_000_000
_MOST_CELLS = 2_000_000


def parts_of(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield messages in parts of at most 8 MB; a longer one is a part of its own."""
    if sum(map(_size_of, messages)) <= _MOST_BYTES:
        if messages:
            yield list(messages)
        return
    part: list[Message] = []
    n_bytes = 0
    for message in messages:
        size = _size_of(message)
        if part and n_bytes + size > _MOST_BYTES:
            yield part
            part, n_bytes = [], 0
        part.append(message)
        n_bytes += size
    if part:
        yield part


def size_of_poll(most: int, last: Sequence[Message]) -> int:
    """Return how many messages to ask for, at most, to get some 8 MB if they are as the last."""
    n_bytes = sum(map(_size_of, last))
    return min(most, max(1, len(last) * _MOST_BYTES // n_bytes)) if n_bytes else most


def _size_of(message: Message) -> int:
    return len(message.value) if isinstance(message.value, (bytes, str)) else 0


def narrow(read: Iterator[tuple[int, Any]]) -> Iterator[list[tuple[int, Any]]]:
    """Cut events into runs whose batches stay small, however many feature names they have."""
    run: list[tuple[int, Any]] = []
    names: set[Any] = set()
    n_texts = 0
    for offset, one in read:
        if not isinstance(one, Reject):
            texts = list(map(type, one.x.values())).count(str)
            names.update(one.x)
            n_texts += texts
            if run and (len(names) + n_texts) * (len(run) + 1) > _MOST_CELLS:
                yield run
                run, names, n_texts = [], set(one.x), texts
        run.append((offset, one))
    yield run
