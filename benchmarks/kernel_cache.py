"""LASVM of ten classes with little and with much memory: ``python -m benchmarks.kernel_cache``.

MNIST's digits, a share of them relabelled (``--noise``, a tenth), so that many are support vectors.
Printed, for 200 MB of cached kernel rows and for the default: for each 3,000 rows the seconds of
processor time, the support vectors so far, the MB of cached rows and how many were missing; of all,
the time, by which power of the rows it grows from 10,000 of them on, and the peak memory, digits
included. Each is measured in a process of its own (not on Windows).
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from math import log

import numpy as np

from benchmarks import default_streams
from streamsvm import LASVMClassifier, kernels

STEP, FIRST, FROM = 3000, 300, 10_000
"""Rows a step; rows before the first one, which compile; rows from which on growth is measured."""


def noisy_digits(n: int, noise: float) -> tuple[np.ndarray, list[int]]:
    """Return n digits of 784 pixels between 0 and 1; labels are drawn for a share of them."""
    x, y = default_streams.streams(n)["mnist_train"](n)
    random = np.random.default_rng(0)
    drawn = np.where(random.random(n) < noise, random.integers(10, size=n), y.astype(int))
    return (x / x.max()).astype(np.float32), drawn.tolist()


def measure(x: np.ndarray, y: list[int], cache_mb: float | None) -> None:
    """Train with so much memory for cached rows; print what it takes."""
    model = LASVMClassifier(kernels.RBF(gamma=0.02), C=10, cache_mb=cache_mb)
    model.learn_many(x[:FIRST], y[:FIRST])
    total, times = 0.0, {}
    for start in range(FIRST, len(x), STEP):
        missing, began = model.counters["cached_rows_missed"], time.process_time()
        model.learn_many(x[start : start + STEP], y[start : start + STEP])
        seconds = time.process_time() - began
        total += seconds
        stop = min(start + STEP, len(x))
        times[stop] = total
        cached = model.memory_parts["cache"] / 1e6
        missing = model.counters["cached_rows_missed"] - missing
        print(
            f"{stop:7,} {seconds:7.2f} s {model.n_support_vectors:7,} SV {cached:6.0f} MB"
            f" {missing:7,} missing"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    first = min((n for n in times if n >= FROM), default=len(x))
    power = f"{log(total / times[first]) / log(len(x) / first):.2f}" if first < len(x) else "-"
    print(f"cache_mb={cache_mb}: {total:.1f} s, power {power}, peak {peak:.0f} MB", flush=True)


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=24_000)
    parser.add_argument("--noise", type=float, default=0.1)
    args = parser.parse_args()
    x, y = noisy_digits(args.rows, args.noise)
    for cache_mb in (200, None):
        process = multiprocessing.get_context("fork").Process(target=measure, args=(x, y, cache_mb))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
