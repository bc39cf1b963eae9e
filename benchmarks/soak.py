"""A stream without end through each bounded learner: ``python -m benchmarks.soak``.

Each learner runs in a process of its own on events that drift (a boundary that turns once in a
million events, 10 % of the labels exchanged). Printed: resident memory and speed over nine tenths
of the run, after the first as warm-up, and how far they stray. ``--events 1000000 --one-by-one``
gives dicts to `learn_one`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

import numpy as np

from streamsvm import LASVMClassifier, TrackingMonitor, TrackingSVMClassifier, kernels

LEARNERS = {
    "LASVM, window 500": lambda: LASVMClassifier(window=500),
    "LASVM, 200 SV, merge": lambda: LASVMClassifier(max_support_vectors=200),
    "LASVM, 200 SV, project": lambda: LASVMClassifier(max_support_vectors=200, budget="project"),
    "LASVM, 200 SV, remove": lambda: LASVMClassifier(max_support_vectors=200, budget="remove"),
    "tracking, window 500": lambda: TrackingSVMClassifier(window=500, seed=1),
    "tracking, reservoir 500": lambda: TrackingSVMClassifier(reservoir=500, seed=1),
    "tracking, 200 SV, merge": lambda: TrackingSVMClassifier(max_support_vectors=200, seed=1),
    "tracking, support, window 500": lambda: TrackingSVMClassifier(
        window=500, gradients="support", seed=1
    ),
    "tracking, linear, window 500": lambda: TrackingSVMClassifier(
        kernels.Linear(), window=500, seed=1
    ),
}
BATCH = 1000
TENTHS = 10


def stream(start: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return events start .. start + n - 1."""
    rng = np.random.default_rng(start)
    x = rng.normal(size=(n, 5)).astype(np.float32)
    angle = 2e-6 * np.pi * np.arange(start, start + n)
    margin = x[:, 0] * np.cos(angle) + x[:, 1] * np.sin(angle) + 0.5 * x[:, 2] ** 2 - 0.5
    return x, (margin > 0) ^ (rng.random(n) < 0.1)


def resident_mb() -> float:
    """Return the resident memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def soak(name: str, events: int, one_by_one: bool) -> None:
    """Run one learner under a monitor and print its line."""
    monitor = TrackingMonitor(LEARNERS[name]())
    memory, speed = [], []
    for tenth in range(TENTHS):
        seconds = 0.0
        for start in range(tenth * events // TENTHS, (tenth + 1) * events // TENTHS, BATCH):
            x, y = stream(start, BATCH)
            rows = [dict(zip("abcde", row, strict=True)) for row in x.tolist()]
            labels = y.tolist()
            began = time.process_time()
            if one_by_one:
                for row, label in zip(rows, labels, strict=True):
                    monitor.learn_one(row, label)
            else:
                monitor.learn_many(x, y)
            seconds += time.process_time() - began
        memory.append(resident_mb())
        speed.append(seconds / (events / TENTHS) * 1e6)
    # The first tenth is the warm-up.
    held, took = np.array(memory[1:]), np.array(speed[1:])
    values = monitor.get()
    print(
        f"| {name} | {took.mean():.1f} | {took.min() / took.mean() - 1:+.1%} "
        f"{took.max() / took.mean() - 1:+.1%} | {held[-1]:.0f} | {held[-1] / held[0] - 1:+.2%} "
        f"| {values['n_support_vectors']} | {values['accuracy']:.2%} "
        f"| {values['memory_bytes'] / 1e6:.1f} |",
        flush=True,
    )


def main() -> None:
    """Run all learners, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--one-by-one", action="store_true")
    parser.add_argument("--learner", choices=sorted(LEARNERS))
    options = parser.parse_args()
    if options.learner:
        soak(options.learner, options.events, options.one_by_one)
        return
    print(f"{options.events:,} events, {'dicts' if options.one_by_one else 'batches of 1,000'}")
    print("| learner | us an event | strays | MB resident | grew | SV | accuracy | model MB |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in LEARNERS:
        command = [sys.executable, "-m", "benchmarks.soak", "--learner", name]
        command += ["--events", str(options.events)]
        subprocess.run(command + ["--one-by-one"] * options.one_by_one, check=True)


if __name__ == "__main__":
    main()
