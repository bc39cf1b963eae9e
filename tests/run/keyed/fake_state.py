"""A state as stream engines have it, of which a crash loses any part of the last commit."""


class FakeState:
    """The state of one key; writes count when they are committed."""

    def __init__(self):
        self.kept = {}
        self.written = {}
        self.bytes_committed = self.n_committed = 0

    def get(self, name):
        if name in self.written:
            return self.written[name]
        value = self.kept.get(name)
        return None if value is None else bytes(bytearray(value))  # another object each time

    def set(self, name, value):
        assert type(value) is bytes and len(value) < 1_000_000
        self.written[name] = value

    def commit(self):
        self.kept |= self.written
        self.n_committed += len(self.written)
        self.bytes_committed += sum(len(n) + len(v) for n, v in self.written.items())
        self.written = {}

    def crash(self, survives):
        """Keep, of the writes since the last commit, those of some numbers."""
        for i, (name, value) in enumerate(self.written.items()):
            if i in survives:
                self.kept[name] = value
        self.written = {}
