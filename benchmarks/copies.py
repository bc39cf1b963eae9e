"""What checkpoints, copies and locks cost: ``python -m benchmarks.copies``.

A model of 10,400 support vectors x 784: encoding it, writing it to disk, reading it back, the copy
that `Serving` answers from. Then what the lock adds to an event of a small model.
"""

from __future__ import annotations

import contextlib
import copy
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from streamsvm import LASVMClassifier, kernels
from streamsvm.model_files import container as model_file
from streamsvm.model_files import replacing


def seconds(action: Callable[[], Any], repeats: int = 5) -> str:
    """Return the first time and the median of all, as text."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return f"first {times[0]:6.3f} s, median {np.median(times):6.3f} s"


def large_model() -> LASVMClassifier:
    """Return a model with 10,400 support vectors x 784: labels that have nothing to do with x."""
    rng = np.random.default_rng(0)
    model = LASVMClassifier(kernels.RBF(gamma=0.005), seed=0)
    model.learn_many(rng.normal(size=(10_400, 784)).astype(np.float32), rng.random(10_400) > 0.5)
    return model


def lock_cost(rounds: int = 9, n: int = 20_000) -> tuple[float, float]:
    """Return microseconds of `predict_one` with the lock, and with one that does nothing."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 8))
    model = LASVMClassifier(max_support_vectors=200, seed=0)
    events = [dict(enumerate(row)) for row in x.tolist()]
    for event, label in zip(events, (x[:, 0] > 0).tolist(), strict=True):
        model.learn_one(event, label)
    times: dict[str, list[float]] = {"with": [], "without": []}
    locks: dict[str, Any] = {"with": threading.RLock(), "without": contextlib.nullcontext()}
    for _ in range(rounds):
        for name, lock in locks.items():
            model.lock = lock
            start = time.perf_counter()
            for i in range(n):
                model.predict_one(events[i % 2000])
            times[name].append((time.perf_counter() - start) / n)
    return 1e6 * float(np.median(times["with"])), 1e6 * float(np.median(times["without"]))


def main() -> None:
    """Print all."""
    model = large_model()
    encoded = model_file.encoded(model, {}, None)
    path = Path(tempfile.mkdtemp()) / "model"
    print(f"{model.n_support_vectors:,} support vectors x 784, {len(encoded) / 1e6:.0f} MB")
    print("encode ", seconds(lambda: model_file.encoded(model, {}, None)))
    print("write  ", seconds(lambda: replacing.write(path, encoded)))
    print("read   ", seconds(lambda: model_file.read(path)))
    print("copy   ", seconds(lambda: copy.deepcopy(model)))
    with_lock, without = lock_cost()
    print(f"predict_one: {with_lock:.2f} us with the lock, {without:.2f} us without")


if __name__ == "__main__":
    main()
