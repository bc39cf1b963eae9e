"""The floor: what the kernel values of one epoch of LASVM cost at this machine's matrix rate.

A LASVM must compute the values of each fresh row with all support vectors of the moment (they
decide whether it violates), and the rows of those that take part in steps. At three operations a
feature (subtract, multiply, add) and one exponential each, that is the least time that an epoch
takes; the bytes are those of the stored rows, read once a block of 64 fresh rows.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.peers import workloads
from streamsvm import LASVMClassifier, kernels
from streamsvm.support import stores
from streamsvm.support.kernel_rows import kernel_values

_BLOCK = 64


def _matrix_rate(d: int) -> float:
    """Return operations a second of NumPy's float32 matrix product, 64 rows by 4,096."""
    a, b = np.ones((_BLOCK, d), np.float32), np.ones((d, 4096), np.float32)
    best = min(_seconds(lambda: a @ b) for _ in range(30))
    return 2.0 * _BLOCK * 4096 * d / best


def _seconds(work: object) -> float:
    start = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - start


def _own_rate(rows: np.ndarray, gamma: float) -> float:
    """Return kernel values a second of a block against stored rows."""
    n, d = rows.shape
    store = stores.filled(stores.new_store(n, d, False), rows)
    out = np.zeros((_BLOCK, store.entered.size), np.float32)
    kernel, x = kernels.RBF(gamma=gamma), np.ascontiguousarray(rows[:_BLOCK])

    def block() -> None:
        kernel_values.kernel_values(kernel, store, x, _BLOCK, d, 0, n, out)

    block()
    return _BLOCK * n / min(_seconds(block) for _ in range(10))


def report() -> None:
    """Print the floor of Adult (C 1) and MNIST 8, and our multiple of it."""
    for name in ("adult", "mnist_8"):
        work = workloads.paper(name)
        d = work.x.shape[1]

        def new(work: workloads.Workload = work) -> LASVMClassifier:
            return LASVMClassifier(kernels.RBF(gamma=work.gamma), C=work.C)

        new().learn_many(work.x[:300], work.y[:300])
        model = new()
        seconds = _seconds(lambda: model.learn_many(work.x, work.y))  # noqa: B023
        values = model.counters["kernel_values"]
        n = model.n_support_vectors
        rows = model.support_vectors().rows
        matrix, own = _matrix_rate(d), _own_rate(rows, work.gamma)
        # A matrix product has two operations a feature where a distance has three.
        floor = 3.0 * values * d / matrix
        print(
            f"{name}: {values / 1e6:.0f}M kernel values x {d} features = "
            f"{3e-9 * values * d:.0f} G operations, "
            f"{4e-9 * d * values / _BLOCK:.1f} GB of rows read\n"
            f"  NumPy's matrix product: {matrix / 1e9:.0f} G operations a second: "
            f"floor {floor:.2f} s\n"
            f"  our panels: {1e9 / own:.2f} ns a value ({3.0 * own * d / 1e9:.0f} G operations a "
            f"second): {values / own:.2f} s of kernel arithmetic\n"
            f"  one epoch: {seconds:.2f} s, {n:,} support vectors: {seconds / floor:.1f} times the "
            f"floor, {100 * values / own / seconds:.0f} % of it kernel arithmetic"
        )
