"""A consumer of confluent-kafka's kind that reads a log in memory, and payloads of Arrow."""

import pyarrow as pa


def arrow_bytes(batch):
    """Return a record batch as a message's payload."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


class Partition:
    def __init__(self, topic, partition, offset=-1001):
        self.topic, self.partition, self.offset = topic, partition, offset


class MethodMessage:
    """A message of confluent-kafka: all attributes are methods, errors are messages."""

    def __init__(self, partition, offset, value, error=None, timestamp=(1, 2500)):
        given = {"topic": "t", "partition": partition, "offset": offset, "value": value}
        for name, one in (given | {"error": error, "timestamp": timestamp, "key": b"k"}).items():
            setattr(self, name, lambda one=one: one)


class Confluent:
    """What confluent_kafka.Consumer does with a log of messages by partition."""

    def __init__(self, log, errors=(), committed=None):
        self.log, self.errors = log, list(errors)
        self.places = {}
        self.commits = dict(committed or {})
        self.closed = False
        self._pending = None

    def subscribe(self, topics, on_assign, on_revoke, on_lost):
        self.on_assign, self.on_revoke = on_assign, on_revoke
        self._pending = sorted(self.log)

    def committed(self, partitions, timeout):
        return [
            Partition(p.topic, p.partition, self.commits.get(p.partition, -1001))
            for p in partitions
        ]

    def assign(self, partitions):
        self.places = {p.partition: max(0, p.offset) for p in partitions}

    def unassign(self):
        self.places = {}

    def assignment(self):
        return [Partition("t", p) for p in self.places]

    def rebalance(self, partitions):
        self.on_revoke(self, [Partition("t", p) for p in self.places])
        self._pending = partitions

    def consume(self, n, timeout):
        if self.errors:
            return [MethodMessage(0, -1, None, self.errors.pop(0))]
        if self._pending is not None:
            pending, self._pending = self._pending, None
            self.on_assign(self, [Partition("t", p) for p in pending])
        found = []
        for p in sorted(self.places):
            values = self.log[p][self.places[p] : self.places[p] + n]
            found += [MethodMessage(p, self.places[p] + i, v) for i, v in enumerate(values)]
            self.places[p] += len(values)
        return found

    def commit(self, offsets, asynchronous):
        assert asynchronous is True
        self.commits |= {p.partition: p.offset for p in offsets}

    def close(self):
        self.closed = True
