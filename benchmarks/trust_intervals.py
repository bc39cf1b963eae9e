"""Accuracies with intervals: how often they fail, how wide they are, and what they notice.

``python -m benchmarks.trust intervals [--streams 1000] [--events 100000]``: of streams whose
probability of being right is known at each moment, the share whose interval was ever wrong, looking
after each event; widths beside those of intervals of one moment; and how often, and how soon, "of
late" is said to differ from "since the start".
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import numpy as np

from streamsvm.confidence.sequence import log_capital, log_gains, share_interval
from streamsvm.monitor.score import BLOCK, LEVEL, recent_error

WARM_UP = 100
"""Intervals of one moment are not looked at before so many events."""


def right_of(kind: str, n_streams: int, n: int, seed: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield blocks of n events: what was right, bool, and with which probability it was to be."""
    draw = np.random.default_rng(seed)
    phase = draw.uniform(0.0, 6.0, n_streams)[:, None]
    moment = draw.integers(1, n, n_streams)[:, None]
    mean, seen, wanted = np.full(n_streams, 0.8), np.zeros(n_streams), np.zeros(n_streams)
    for start in range(0, n, BLOCK):
        t = np.arange(start, start + BLOCK)
        if kind == "waves, .55 to .95":
            p = 0.75 + 0.2 * np.sin(t / 500.0 + phase)
        elif kind == "a fall from .95 to .6":
            p = np.where(t < moment, 0.95, 0.6)
        elif kind == "learning, .5 to .95":
            p = np.tile(0.95 - 0.45 / np.sqrt(1.0 + t / 200.0), (n_streams, 1))
        elif kind in ("worse after errors", "better while lucky, else worse"):
            p, right = np.empty((n_streams, BLOCK)), np.empty((n_streams, BLOCK), bool)
            for i in range(BLOCK):
                p[:, i] = 0.5 + 0.45 * mean if kind == "worse after errors" else (
                    np.where(seen > wanted, 0.95, 0.55)
                )  # fmt: skip
                right[:, i] = draw.random(n_streams) < p[:, i]
                mean += 0.02 * (right[:, i] - mean)
                seen, wanted = seen + right[:, i], wanted + p[:, i]
            yield right, p
            continue
        else:
            p = np.full((n_streams, BLOCK), float(kind))
        yield draw.random(p.shape) < p, p


def violated(kind: str, n_streams: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return when each stream's interval was first wrong, and when Wilson's was; n: never."""
    limit = math.log(2.0 / (1.0 - LEVEL))
    ours, wilson = np.full(n_streams, n), np.full(n_streams, n)
    ones, due, start = np.zeros((n_streams, 1)), np.zeros((n_streams, 1)), 0
    for right, p in right_of(kind, n_streams, n, seed=1):
        seen, wanted = ones + np.cumsum(right, axis=1), due + np.cumsum(p, axis=1)
        total = np.broadcast_to(np.arange(start + 1, start + BLOCK + 1), seen.shape)
        share, mean = seen / total, wanted / total
        # No bet can have gained more than the divergence: only where it is large is it looked at.
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.nan_to_num(share * np.log(share / mean)) + np.nan_to_num(
                (1.0 - share) * np.log((1.0 - share) / (1.0 - mean))
            )
        rows, columns = np.nonzero(total * best >= limit)
        hits, of, m = seen[rows, columns], total[rows, columns], mean[rows, columns]
        counts, wrong = np.stack([hits, of - hits], axis=-1), np.zeros(len(rows), bool)
        for values, about in (([1.0, 0.0], m), ([0.0, 1.0], 1.0 - m)):
            wrong |= log_capital(log_gains(counts, values), of, about) >= limit
        np.minimum.at(ours, rows[wrong], start + columns[wrong])
        z = (share - mean) / np.sqrt(mean * (1.0 - mean) / total)
        rows, columns = np.nonzero((np.abs(z) > 1.96) & (total >= WARM_UP))
        np.minimum.at(wilson, rows, start + columns)
        ones, due, start = seen[:, -1:], wanted[:, -1:], start + BLOCK
    return ours, wilson


KINDS = (
    *("0.5", "0.7", "0.9", "0.95", "0.99"),
    *("waves, .55 to .95", "a fall from .95 to .6", "learning, .5 to .95"),
    *("worse after errors", "better while lucky, else worse"),
)


def print_violations(n_streams: int, n: int) -> None:
    print(f"\n{n_streams:,} streams, a look after each event: share ever wrong, in percent")
    early = min(10_000, n)
    print(f"| probability of being right | by {early:,} | by {n:,} | Wilson's, by {n:,} |")
    print("|---|---|---|---|")
    for kind in KINDS:
        ours, wilson = violated(kind, n_streams, n)
        figures = [(ours < early).mean(), (ours < n).mean(), (wilson < n).mean()]
        print(f"| {kind} | " + " | ".join(f"{100 * x:.1f}" for x in figures) + " |", flush=True)


def print_widths() -> None:
    print("\nwidth in points, and how many times that of Wilson's interval of one moment")
    print("| accuracy | 1,000 events | 10,000 | 100,000 |")
    print("|---|---|---|---|")
    for p in (0.5, 0.7, 0.9, 0.95, 0.99):
        cells = []
        for n in (1000, 10_000, 100_000):
            low, high = share_interval(p * n, n)
            z = 1.96
            wilson = 2 * z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
            cells.append(f"{100 * (high - low):.2f} ({(high - low) / wilson:.2f})")
        print(f"| {p} | " + " | ".join(cells) + " |")


def changes(seen: np.ndarray, every: int) -> np.ndarray:
    """Return -1, 0 or 1 at each look, `every` events: how "of late" differs from the start."""
    looks = np.arange(every, seen.shape[1] + 1, every)
    start = np.maximum(0, (looks // BLOCK - 1) * BLOCK)
    ones = np.concatenate([np.zeros((len(seen), 1)), seen], axis=1)
    hits, late = ones[:, looks], ones[:, looks] - ones[:, start]
    error = recent_error(start // BLOCK)
    found = np.zeros(hits.shape, int)
    # One stream at a time: all bets of all looks at once would need much memory.
    for i in range(len(seen)):
        low, high = share_interval(hits[i], looks, LEVEL)
        recent_low, recent_high = share_interval(late[i], looks - start, 1.0 - error)
        found[i] = (recent_low > high).astype(int) - (recent_high < low)
    return found


def daily_tests(seen: np.ndarray) -> np.ndarray:
    """Return whether each block but the first differs from all before, by a two-sided t-test."""
    right = np.diff(seen[:, BLOCK - 1 :: BLOCK], prepend=0.0, axis=1)
    before = np.cumsum(right, axis=1)[:, :-1]
    n_before = BLOCK * np.arange(1, right.shape[1])
    a, b = right[:, 1:] / BLOCK, before / n_before
    error = np.sqrt(a * (1 - a) / BLOCK + b * (1 - b) / n_before)
    return np.abs(a - b) > 1.96 * np.maximum(error, 1e-12)


def print_changes(n_streams: int, n: int) -> None:
    """Print false alarms on steady streams, and delays after a fall."""
    draw, every = np.random.default_rng(2), 100
    print(f'\n"of late" outside, a look each {every} events; a t-test each {BLOCK:,} events')
    print("| stream | said, % | a daily t-test, % |\n|---|---|---|")
    for p in (0.7, 0.9, 0.97):
        ever, tested = [], []
        for _ in range(0, n_streams, 100):
            seen = np.cumsum(draw.random((100, n)) < p, axis=1)
            ever.append((changes(seen, every) != 0).any(axis=1))
            tested.append(daily_tests(seen).any(axis=1))
        said = f"{100 * np.mean(ever):.1f} | {100 * np.mean(tested):.1f}"
        print(f"| steady {p}, {n:,} events | {said} |", flush=True)
    print("\ndelay in events after a fall: median, 90 % quantile, share said within 10,000")
    print("| from, to, after | events | said, % |\n|---|---|---|")
    for at in (5000, 50_000):
        for low in (0.85, 0.7):
            means = np.where(np.arange(at + 10_000) < at, 0.9, low)
            seen = np.cumsum(draw.random((200, at + 10_000)) < means, axis=1)
            said = changes(seen, 20)[:, at // 20 :] == -1
            delay = np.where(said.any(axis=1), 20 * (said.argmax(axis=1) + 1), 10_000)
            middle, late = np.quantile(delay, [0.5, 0.9])
            share = 100 * said.any(axis=1).mean()
            print(f"| .9, {low}, {at:,} | {middle:,.0f}, {late:,.0f} | {share:.1f} |", flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--events", type=int, default=100_000)
    options = parser.parse_args(arguments)
    print_widths()
    print_changes(options.streams, options.events)
    print_violations(options.streams, options.events)
