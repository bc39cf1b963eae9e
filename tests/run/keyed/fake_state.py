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


class Changelog:
    """The topic of a state's changes; workers with an empty disk make their state of it.

    Records of a commit whose offsets were not committed are passed over, until later offsets are.
    """

    def __init__(self):
        self.records, self.committed = [], 0

    def add(self, state, at, survives=None):
        """Add the writes since the last commit, or those of some numbers; `at` is their offset."""
        for i, (name, value) in enumerate(state.written.items()):
            if survives is None or i in survives:
                self.records.append((at, name, value))

    def commit(self, state, n):
        """Commit the writes, and that n events were processed."""
        self.add(state, n - 1)
        self.committed = n
        state.commit()

    def state(self):
        """Return the state of a worker that had none."""
        found = FakeState()
        found.kept = {name: value for at, name, value in self.records if at < self.committed}
        return found
