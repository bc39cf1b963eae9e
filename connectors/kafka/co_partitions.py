"""Whether the events and labels of a key come to one member of a group, or may not meet at all."""

import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from connectors.errors import SourceError
from connectors.source import topic_and_number

_ENOUGH = 30
"""So many keys tell which hash put them where they are; of two partitions, too."""

_SHARE = 0.9


class CoPartitions:
    """What must hold of a topic of events and one of labels, `labels`, in a group.

    Their partitions are as many; a member has the same numbers of both; and both have their keys
    where the same hash puts them. All else is refused, by a SourceError.
    """

    def __init__(self, labels: str) -> None:
        self._labels = labels
        self._n = 0  # partitions of a topic
        # Keys of events (False), of labels (True), and how many are where each hash puts them.
        self._keys: dict[bool, set[Any]] = {False: set(), True: set()}
        self._found = {role: dict.fromkeys(_HASHES, 0) for role in self._keys}

    def check(self, counts: Mapping[str, int], places: Collection[str], by_partition: bool) -> None:
        """Look at the partitions that this member has, of so many of each topic.

        `by_partition`: members take over from each other what they hold of partitions.
        """
        if not by_partition:
            if len(places) < sum(counts.values()):
                raise SourceError(
                    f"this member of the group has {len(places)} of {sum(counts.values())} "
                    "partitions, and labels come in a topic of their own: events and labels of a "
                    "key meet only if members share their checkpoints (--peers, "
                    "Checkpoint(peers=)), or if one process has the group for itself"
                )
            return
        if len(set(counts.values())) > 1:
            told = ", ".join(f"`{topic}` has {n}" for topic, n in sorted(counts.items()))
            raise SourceError(
                f"members of a group bring events and labels of a key together only if their "
                f"topics have as many partitions ({told}): make them so, or learn in one process, "
                "without --peers (Checkpoint(peers=))"
            )
        self._n = max(counts.values(), default=0)
        numbers = {topic: set[int]() for topic in counts}
        for topic, number in map(topic_and_number, places):
            numbers.setdefault(topic, set()).add(number)
        if len(set(map(frozenset, numbers.values()))) > 1:
            told = "; ".join(f"`{t}`: {str(sorted(n))[1:-1]}" for t, n in sorted(numbers.items()))
            raise SourceError(
                f"this member has partitions of other numbers of events than of labels ({told}): "
                "let all members use partition.assignment.strategy=range (with "
                "group.protocol=consumer: group.remote.assignor=range)"
            )

    def look(self, place: str, keys: Iterable[Any]) -> None:
        """Look at the keys of messages of a partition, until it is known where keys are."""
        if self._n < 2:
            return
        topic, number = topic_and_number(place)
        role = topic == self._labels
        seen, found = self._keys[role], self._found[role]
        if len(seen) < _ENOUGH:
            for key in set(keys) - seen - {None}:
                seen.add(key)
                for name, hash_of in _HASHES.items():
                    found[name] += hash_of(str(key).encode()) % self._n == number
        if all(len(seen) >= _ENOUGH for seen in self._keys.values()):
            by = {
                role: _explaining(self._found[role], len(seen)) for role, seen in self._keys.items()
            }
            if by[False] != by[True]:
                raise SourceError(
                    f"keys of events are in the partitions of {by[False]}, keys of labels in "
                    f"those of {by[True]}, so that members of a group cannot bring them together: "
                    "produce both with one partitioner (partitioner=murmur2_random is Java's, "
                    "librdkafka's default is consistent_random), or learn in one process, without "
                    "--peers"
                )
            self._n = 0  # all is well


def _explaining(found: Mapping[str, int], n: int) -> str:
    return next((name for name, its in found.items() if its >= _SHARE * n), "another partitioner")


def _murmur2(key: bytes) -> int:
    """Return the hash of Java's client."""
    m, whole = 0x5BD1E995, len(key) // 4 * 4
    h = 0x9747B28C ^ len(key)
    for i in range(0, whole, 4):
        k = int.from_bytes(key[i : i + 4], "little") * m & 0xFFFFFFFF
        h = (h * m ^ (k ^ k >> 24) * m) & 0xFFFFFFFF
    if rest := key[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * m & 0xFFFFFFFF
    h = (h ^ h >> 13) * m & 0xFFFFFFFF
    return (h ^ h >> 15) & 0x7FFFFFFF


_HASHES: dict[str, Callable[[bytes], int]] = {
    "murmur2_random": _murmur2,
    "consistent_random": zlib.crc32,
}
