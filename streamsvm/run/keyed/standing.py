"""Whether the state of a partition has all events that its group has read: else models lack some.

Quix Streams makes the state of a worker of the changelog, up to where that can be read: not beyond
a transaction that a killed worker left open, nor what retention has removed. It starts at the
offsets that the group has committed, which may be ahead of that.
"""

from __future__ import annotations

import logging
from typing import Any

from streamsvm.errors import KeyedStateError
from streamsvm.run.keyed import records

_ASKED_SECONDS = 30.0
_PREFIX = b"null"  # that of no key: models are not of messages without one
_THE_END = -191  # the error of librdkafka that says so of a partition
_OF_PRODUCERS = frozenset({"partitioner", "logger", "error_cb", "stats_cb", "transactional.id"})

_log = logging.getLogger("streamsvm.run.keyed")


class _OfPartition:
    """The values of a partition, beside those of its keys."""

    def __init__(self, transaction: Any, timestamp: int) -> None:
        found = transaction.as_state(_PREFIX, timestamp=timestamp)
        self.get, self.set = found.get_bytes, found.set_bytes


class Standing:
    """Keeps, in the state of each partition, the offset after the last message that models had.

    A second value says that the state was there from the beginning. It is written once, so that it
    is the first that a retention of the changelog would remove. `may_lack`: a warning is enough.
    """

    def __init__(self, name: str, may_lack: bool) -> None:
        self._after, self._began = f"{name}/after", f"{name}/began"
        self._may_lack = may_lack
        # The partitions that were looked at, as this worker has them.
        self._seen: dict[tuple[str, int], Any] = {}

    def note(self, of_key: Any, context: Any, timestamp: int) -> None:
        """Note that models are given a message; look at its partition first, if that is new here.

        `of_key` is the state of the message's key, `context` that of the message.

        KeyedStateError: the state lacks messages that the group has read.
        """
        transaction = of_key._transaction
        state = _OfPartition(transaction, timestamp)
        name = f"{self._after}/{context.topic}"
        value = state.get(name)
        after = -1 if value is None else int(records.unsealed(value, name))
        place = context.topic, context.partition
        partition = transaction._partition  # another object each time that it is assigned
        if self._seen.get(place) is not partition:
            self._look(transaction, state, place, after)
            self._seen[place] = partition
        # Offsets that are set back change nothing: events are learnt once.
        if context.offset >= after:
            state.set(name, records.sealed(b"%d" % (context.offset + 1)))

    def _look(
        self, transaction: Any, state: _OfPartition, place: tuple[str, int], after: int
    ) -> None:
        name = f"{self._began}/{place[0]}"
        began = state.get(name) is not None
        why = None
        if transaction.changelog_topic_partition is not None:
            with _Changelog(transaction, place[0]) as changelog:
                committed = changelog.committed(*place)
                if committed > 0 and not began:
                    why = changelog.why_not_whole(committed)
                elif began and 0 <= after < committed:
                    key = b"|".join((_PREFIX, f'"{self._after}/{place[0]}"'.encode()))
                    why = changelog.why_behind(key, after, committed)
        if why is not None:
            where = f"the state of the models of {place[0]}[{place[1]}]"
            if not self._may_lack:
                raise KeyedStateError(f"{where} {why}; may_lack=True goes on without them")
            _log.warning("%s %s", where, why)
        if not began:
            state.set(name, records.sealed(b"1"))


class _Changelog:
    """The changelog of a partition's state, and the group's offsets, asked for as they are now."""

    def __init__(self, transaction: Any, topic: str) -> None:
        from confluent_kafka import Consumer

        self._name, self._partition = transaction.changelog_topic_partition
        group, found, _ = self._name.removeprefix("changelog__").rpartition(f"--{topic}--")
        if not found:  # a topic that Quix Streams has made has another name here
            group = self._name.removeprefix("changelog__").rsplit("--", 2)[0]
        given = transaction.changelog_producer._producer._producer._producer_config
        # The settings that say where brokers are, and who asks; others are passed over.
        settings = {name: value for name, value in given.items() if name not in _OF_PRODUCERS}
        own = {"group.id": group, "enable.auto.commit": False, "log_level": 0}
        own |= {"isolation.level": "read_uncommitted", "enable.partition.eof": True}
        self._consumer = Consumer(settings | own)

    def __enter__(self) -> _Changelog:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def _place(self, topic: str, partition: int, offset: int = 0) -> Any:
        from confluent_kafka import TopicPartition

        return TopicPartition(topic, partition, offset)

    def committed(self, topic: str, partition: int) -> int:
        """Return the offset that the group has committed; below 0: none."""
        places = [self._place(topic, partition)]
        (found,) = self._consumer.committed(places, _ASKED_SECONDS)
        if found.error is not None:
            raise KeyedStateError(f"the group's offsets cannot be asked for: {found.error}")
        return int(found.offset)

    def why_not_whole(self, committed: int) -> str | None:
        """Return why a state of unknown beginning may lack messages; None: it need not."""
        place = self._place(self._name, self._partition)
        low, high = self._consumer.get_watermark_offsets(place, _ASKED_SECONDS)
        if low > 0:
            return (
                f"may lack keys: its changelog {self._name}[{self._partition}] begins at {low:,}, "
                "what was before is removed (cleanup.policy=compact keeps it); use the state_dir "
                "of a worker that has all, or another consumer_group to begin all keys anew"
            )
        if high == 0:
            return (
                f"is empty, as is its changelog {self._name}[{self._partition}], and the group has "
                f"read up to {committed:,}: use another consumer_group, to learn from the beginning"
            )
        return None

    def why_behind(self, key: bytes, after: int, committed: int) -> str | None:
        """Return what is said of a state that stands before the offset that is committed.

        None: a step before the models has left those messages out, as models never had them.
        """
        self._consumer.assign([self._place(self._name, self._partition, 0)])
        while (message := self._consumer.poll(_ASKED_SECONDS)) is not None:
            if (error := message.error()) is not None:
                if error.code() == _THE_END:
                    return None
                break
            if message.key() == key and (value := message.value()):
                its = int(records.unsealed(value, "the offset of a partition"))
                if after < its <= committed:
                    return (
                        f"stands at {after:,}, and the group has committed {committed:,}: start "
                        "the worker again when no transaction of a killed one is open on the "
                        "changelog any longer (transaction.timeout.ms, a minute by default), or "
                        f"set the group's offset back to {after}: what was learnt is passed over"
                    )
        raise KeyedStateError(f"the changelog {self._name} cannot be read to its end: start again")
