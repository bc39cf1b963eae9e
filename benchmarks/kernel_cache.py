"""LASVM of ten classes with little and with much memory: ``python -m benchmarks.kernel_cache``.

MNIST's digits, a tenth of them relabelled, so that most are support vectors. Printed: for each
3,000 rows the seconds of processor time, the support vectors so far and the MB of cached rows.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks import default_streams
from streamsvm import LASVMClassifier, kernels

STEP = 3000


def noisy_digits(n: int) -> tuple[np.ndarray, list[int]]:
    """Return n digits of 784 pixels between 0 and 1; one label in ten is drawn."""
    x, y = default_streams.streams(n)["mnist_train"](n)
    random = np.random.default_rng(0)
    drawn = np.where(random.random(n) < 0.1, random.integers(10, size=n), y.astype(int))
    return (x / x.max()).astype(np.float32), drawn.tolist()


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=24_000)
    n = parser.parse_args().rows
    x, y = noisy_digits(n)
    for cache_mb in (200, None):
        model = LASVMClassifier(kernels.RBF(gamma=0.02), C=10, cache_mb=cache_mb)
        model.learn_many(x[:300], y[:300])  # the first call compiles
        total = 0.0
        for start in range(300, n, STEP):
            began = time.process_time()
            model.learn_many(x[start : start + STEP], y[start : start + STEP])
            seconds = time.process_time() - began
            total += seconds
            cached = model.memory_parts["cache"] / 1e6
            print(f"{start:7,} {seconds:7.2f} s {model.n_support_vectors:7,} SV {cached:7.0f} MB")
        print(f"cache_mb={cache_mb}: {total:.1f} s")


if __name__ == "__main__":
    main()
