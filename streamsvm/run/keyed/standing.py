"""Whether the state of a partition has all events that its group has read: else models lack some.

Quix Streams makes the state of a worker of the changelog, as far as retention has left it. It
starts at the offsets that the group has committed, whatever the state has.
"""

from __future__ import annotations

import logging
from typing import Any

from streamsvm.errors import KeyedStateError
from streamsvm.run.keyed import records

_ASKED_SECONDS = 30.0
_PREFIX = b"null"  # that of no key: models are not of messages without one
_OF_PRODUCERS = frozenset({"partitioner", "logger", "error_cb", "stats_cb", "transactional.id"})

_log = logging.getLogger("streamsvm.run.keyed")


class Standing:
    """Looks at the state of each partition once, when a worker has got it.

    A value in it says that the state was there from the beginning. It is written once, so that it
    is the first that a retention of the changelog would remove. `may_lack`: a warning is enough.
    """

    def __init__(self, name: str, may_lack: bool) -> None:
        self._name, self._may_lack = f"{name}/began", may_lack
        # The partitions that were looked at, as this worker has them.
        self._seen: dict[tuple[str, int], Any] = {}

    def check(self, of_key: Any, context: Any, timestamp: int) -> None:
        """Look at the partition of a message, if it is new here.

        `of_key` is the state of the message's key, `context` that of the message.

        KeyedStateError: the state lacks messages that the group has read, or may come to that.
        """
        transaction = of_key._transaction
        place = context.topic, context.partition
        partition = transaction._partition  # another object each time that it is assigned
        if self._seen.get(place) is partition:
            return
        has_changelog = transaction.changelog_topic_partition is not None
        if has_changelog and transaction.changelog_producer._producer._producer.transactional:
            # Until its transaction ends others cannot read the changelog beyond it.
            raise KeyedStateError(
                "processing_guarantee='exactly-once': a worker that dies in a commit leaves others "
                "a state that lacks messages; leave it out: models learn each message once without"
            )
        state, name = transaction.as_state(_PREFIX, timestamp=timestamp), f"{self._name}/{place[0]}"
        if state.get_bytes(name) is None:
            why = _why_not_whole(transaction, *place) if has_changelog else None
            if why is not None:
                where = f"the state of the models of {place[0]}[{place[1]}]"
                if not self._may_lack:
                    raise KeyedStateError(f"{where} {why}; may_lack=True goes on without them")
                _log.warning("%s %s", where, why)
            state.set_bytes(name, records.sealed(b"1"))
        self._seen[place] = partition


def _why_not_whole(transaction: Any, topic: str, partition: int) -> str | None:
    """Return why a state of unknown beginning may lack messages; None: it need not."""
    from confluent_kafka import Consumer, TopicPartition

    changelog, number = transaction.changelog_topic_partition
    group, found, _ = changelog.removeprefix("changelog__").rpartition(f"--{topic}--")
    if not found:  # a topic that Quix Streams has made has another name here
        group = changelog.removeprefix("changelog__").rsplit("--", 2)[0]
    # The settings that say where brokers are, and who asks; others are passed over.
    given = transaction.changelog_producer._producer._producer._producer_config.items()
    settings = {name: value for name, value in given if name not in _OF_PRODUCERS}
    own = {"group.id": group, "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer(settings | own)
    try:
        (at,) = consumer.committed([TopicPartition(topic, partition)], _ASKED_SECONDS)
        if at.error is not None:
            raise KeyedStateError(f"the group's offsets cannot be asked for: {at.error}")
        low, high = consumer.get_watermark_offsets(
            TopicPartition(changelog, number), _ASKED_SECONDS
        )
    finally:
        consumer.close()
    if at.offset > 0 and low > 0:
        return (
            f"may lack keys: its changelog {changelog}[{number}] begins at {low:,}, what was "
            "before is removed (cleanup.policy=compact keeps it); use the state_dir of a worker "
            "that has all, or another consumer_group to begin all keys anew"
        )
    if at.offset > 0 and high == 0:
        return (
            f"is empty, as is its changelog {changelog}[{number}], and the group has read up to "
            f"{at.offset:,}: use another consumer_group, to learn from the beginning"
        )
    return None
