"""Which of two models is better: how often that is wrongly said, and how soon it is known.

``python -m benchmarks.trust compare [--streams 1000] [--events 20000]``: of streams with two equal
models, looked at after each event, the share in which one is said to be better at some time, beside
a t-test once a day; the events it takes to see a difference, beside those of a test whose number of
events is fixed before; and with STREAMSVM_DATA=DIR two real learners on three streams.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator

import numpy as np

from streamsvm.confidence.sequence import log_capital, log_gains

LEVEL = 0.95
DAY = 1000
"""Events of a day: the t-test is made at the end of each."""

_BLOCK = 1000
_OF_PAIRS = (1.0, 0.0, 0.5)

EQUAL = {
    "errors of 50 %, independent": (0.5, 0.0),
    "30 %": (0.3, 0.0),
    "10 %": (0.1, 0.0),
    "2 %": (0.02, 0.0),
    "30 %, half of them shared": (0.3, 0.5),
    "10 %, 9 in 10 shared": (0.1, 0.9),
    "waves, 5 to 45 %, better in turns": (None, 0.0),
}
"""Pairs by name: the share of errors, and how many of them both make at the same events."""


def pairs_of(
    error: float | None, shared: float, n_streams: int, n: int, seed: int, better: float = 0.0
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield blocks of events: which a had right, and which b, bool; b errs less by `better`."""
    draw = np.random.default_rng(seed)
    phase = draw.uniform(0.0, 6.0, n_streams)[:, None]
    for start in range(0, n, _BLOCK):
        shape = n_streams, min(_BLOCK, n - start)
        if error is None:
            # In each pair of events, each is the better one once.
            t = np.arange(start, start + shape[1])
            middle = 0.25 + 0.15 * np.sin((t // 2) / 400.0 + phase)
            turn = np.where(t % 2, 0.05, -0.05)
            a, b = draw.random(shape) >= middle + turn, draw.random(shape) >= middle - turn
        else:
            together = draw.random(shape) < shared * (error - better)
            rest = (error - shared * (error - better)) / (1.0 - shared * (error - better))
            rest_b = (1.0 - shared) * (error - better) / (1.0 - shared * (error - better))
            a = ~(together | (draw.random(shape) < rest))
            b = ~(together | (draw.random(shape) < rest_b))
        yield a, b


def first_known(blocks: Iterator[tuple[np.ndarray, np.ndarray]], n: int) -> dict[str, np.ndarray]:
    """Return by name when each stream first had a better model; n: never.

    "a" and "b": by `Comparison`'s rule, after each event; "test": by the daily t-test.
    """
    limit, start = math.log(2.0 / (1.0 - LEVEL)), 0
    found: dict[str, np.ndarray] = {}
    for a, b in blocks:
        if not found:
            found = {name: np.full(len(a), n) for name in ("a", "b", "test")}
            more = less = np.zeros((len(a), 1))
        more, less = more + np.cumsum(b & ~a, axis=1), less + np.cumsum(a & ~b, axis=1)
        total, ahead = more + less, more - less
        # No bet gains more than the divergence, which is at most the square: few are looked at.
        rows, columns = np.nonzero(ahead**2 > limit * np.maximum(total, 1.0))
        m, k, at = more[rows, columns], less[rows, columns], start + columns
        for name, counts in (("b", [m, k, 0 * m]), ("a", [k, m, 0 * m])):
            side = ((m > k) == (name == "b")) & (found[name][rows] == n)
            # Events at which both are right or wrong change nothing.
            gains = log_gains(np.stack(counts, axis=-1)[side], _OF_PAIRS)
            known = log_capital(gains, (m + k)[side], 0.5) >= limit
            np.minimum.at(found[name], rows[side][known], at[side][known])
        start += a.shape[1]
        if start % DAY == 0:
            z = ahead[:, -1] / np.sqrt(np.maximum(total[:, -1] - ahead[:, -1] ** 2 / start, 1e-12))
            found["test"] = np.where(
                (np.abs(z) > 1.96) & (found["test"] == n), start, found["test"]
            )
        more, less = more[:, -1:], less[:, -1:]
    return found


def print_equal(n_streams: int, n: int) -> None:
    print(f"\n{n_streams:,} streams of {n:,} events, two equal models: one said to be better, in %")
    print(f"| errors | after each event | a t-test each {DAY:,} events |\n|---|---|---|")
    for name, (error, shared) in EQUAL.items():
        found = first_known(pairs_of(error, shared, n_streams, n, seed=1), n)
        ours = (np.minimum(found["a"], found["b"]) < n).mean()
        tested = (found["test"] < n).mean()
        print(f"| {name} | {100 * ours:.1f} | {100 * tested:.1f} |", flush=True)


def fixed_number(error: float, shared: float, better: float) -> int:
    """Return how many events a t-test needs, to see the difference with probability .8."""
    together = shared * (error - better)
    rest = (error - together) / (1.0 - together)
    rest_b = (1.0 - shared) * (error - better) / (1.0 - together)
    apart = (1.0 - together) * (rest * (1.0 - rest_b) + rest_b * (1.0 - rest))
    return math.ceil((1.96 + 0.8416) ** 2 * (apart - better**2) / better**2)


def print_different(n_streams: int) -> None:
    print("\nevents until b is known to be better: median, 90 % quantile; those of a t-test whose")
    print("number is fixed before, with power .8; streams in which a was said to be better, %")
    print("| errors of a, shared | points | events | t-test | wrong |\n|---|---|---|---|---|")
    for error, shared in ((0.3, 0.0), (0.3, 0.5), (0.1, 0.0), (0.1, 0.9)):
        for better in (0.05, 0.01):
            fixed = fixed_number(error, shared, better)
            n = _BLOCK * math.ceil(8 * fixed / _BLOCK)
            blocks = pairs_of(error, shared, n_streams, n, 2, better)
            found = first_known(blocks, n)
            middle, late = np.quantile(found["b"] + 1, [0.5, 0.9])
            wrong = 100 * (found["a"] < n).mean()
            what = f"| {100 * error:.0f} %, {100 * shared:.0f} % | {100 * better:.0f} "
            print(f"{what}| {middle:,.0f}, {late:,.0f} | {fixed:,} | {wrong:.1f} |", flush=True)


def print_real() -> None:
    """Print what is said of a linear model and one with a kernel on real streams."""
    import pyarrow.parquet as pq

    from streamsvm import AdaptiveSVMClassifier, Compare, StandardScaler, SVMSGDClassifier

    print("\na: standardised linear SVM, b: adaptive SVM with a kernel")
    print("| stream | known after | at the end |\n|---|---|---|")
    for name in ("banana", "adult_train", "elec2"):
        table = pq.read_table(os.path.join(os.environ["STREAMSVM_DATA"], f"{name}.parquet"))
        target = "label" if "label" in table.column_names else table.column_names[-1]
        model = Compare(StandardScaler() | SVMSGDClassifier(), AdaptiveSVMClassifier())
        model.learn_many(table.drop_columns([target]), table[target])
        known = ", ".join(f"{one}: {n:,}" for one, n in model.comparison.first.items()) or "-"
        print(f"| {name} | {known} | {model.comparison.in_words()} |", flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--events", type=int, default=20_000)
    options = parser.parse_args(arguments)
    print_equal(options.streams, options.events)
    print_different(min(options.streams, 400))
    if "STREAMSVM_DATA" in os.environ:
        print_real()
