"""What reaches the state of a key, by three ways to keep a model in it: see `benchmarks.keyed`."""

from __future__ import annotations

import time
import zlib
from typing import Any

import numpy as np
import pyarrow as pa

from streamsvm import LASVMClassifier, StandardScaler, SVMSGDClassifier
from streamsvm.model_files.container import encoded
from streamsvm.run.keyed.models import KeyedModels
from tests.run.keyed.fake_state import FakeState

_RECORD = 120  # bytes of a record's headers and key, beside its name and value
_BLOCK = 1024
_N = 3000


def _pairs() -> list[tuple[dict[str, float], bool]]:
    rows = np.random.default_rng(0).normal(size=(_N, 8)).round(4)
    return [
        ({f"f{j}": v for j, v in enumerate(row)}, row[0] * row[1] > 0.3 * row[2])
        for row in rows.tolist()
    ]


class _Whole:
    """The whole model at each commit."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def learn(self, i: int, x: Any, y: Any, state: FakeState) -> None:
        self.model.predict_one(x)
        self.model.learn_one(x, y)

    def settle(self, state: FakeState) -> None:
        state.set("model", zlib.compress(encoded(self.model), 1))


class _Blocks(_Whole):
    """The blocks of each array of the model that have changed since the last commit."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._before: dict[str, bytes] = {}

    def settle(self, state: FakeState) -> None:
        with pa.ipc.open_file(encoded(self.model)) as reader:
            (arrays,) = reader.get_batch(0).to_pylist()
            arrays["parts"] = reader.schema.metadata[b"streamsvm.parts"]
        changed = []
        for name, content in arrays.items():
            old = self._before.get(name, b"")
            for at in range(0, len(content), _BLOCK):
                block = content[at : at + _BLOCK]
                if block != old[at : at + _BLOCK]:
                    changed.append(f"{name} {at} ".encode() + block)
        self._before = arrays
        # As one record: what is best for this way.
        state.set("blocks", zlib.compress(b"".join(changed), 1))


class _Log:
    """A snapshot and a log, as the package does it."""

    def __init__(self, model: Any) -> None:
        self.models = KeyedModels(model)

    def learn(self, i: int, x: Any, y: Any, state: FakeState) -> None:
        self.models.predict_then_learn("key", "topic", (i, 0), x, y, state)

    def settle(self, state: FakeState) -> None:
        pass


def writes(options: Any) -> str:
    """Return bytes and microseconds of CPU time of an event, by way, model and commits."""
    lines = ["model, events a commit: whole; changed blocks; snapshot and log (bytes, us an event)"]
    for name, model in (
        ("LASVM", StandardScaler() | LASVMClassifier()),
        ("SGD", StandardScaler() | SVMSGDClassifier()),
    ):
        for every in (1, 10, 100):
            found = []
            for way in (_Whole, _Blocks, _Log):
                state, kept = FakeState(), way(model.clone())
                start = time.process_time()
                for i, (x, y) in enumerate(_pairs()):
                    kept.learn(i, x, y, state)
                    if i % every == every - 1:
                        kept.settle(state)
                        state.commit()
                took = time.process_time() - start
                size = state.bytes_committed + _RECORD * state.n_committed
                found.append(f"{size / _N:,.0f}, {took / _N * 1e6:,.0f}")
            lines.append(f"{name}, {every}: {'; '.join(found)}")
    return "\n".join(lines)
