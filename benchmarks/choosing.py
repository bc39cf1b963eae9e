"""Choosing examples and labels: where it helps, and where it does not.

    python -m benchmarks.choosing [--events 3000] [--seeds 3]

First streams of River's, which LASVM learns with each way of choosing a tenth of the examples,
beside all, and beside all with `max_support_vectors` of the number that "active" ends with:
accuracy, balanced accuracy, support vectors, seconds of the processor. Then test errors of Adult,
and with a tenth of the labels wrong, by C (of data sets that are there). At last the accuracy by
labels asked for, beside River's EntropySampler, which is searched for the setting that asks for as
many (`benchmarks.labels`); and how many questions more than the budget were asked, at the end and
on the way, after the first 50 events: the least and the most. Means over seeds, %.
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from river import active, datasets, metrics
from river.datasets import synth

from benchmarks.golden import problems
from benchmarks.labels import BUDGETS, FIRST, learner, searched
from streamsvm import ActiveLearner, LASVMClassifier
from streamsvm.selection import Active, AutoActive, Random

CAPPED = "all, as few vectors"
STRATEGIES = ("quantile", "uncertainty", "random", "EntropySampler")

# Streams


def reversed_halfway(n: int, seed: int) -> Iterator[Any]:
    """Yield events whose labels change places after half of them."""
    draw = random.Random(seed).random
    for t in range(n):
        x = {"a": draw(), "b": draw()}
        yield x, (x["a"] > x["b"]) != (t >= n // 2)


def rare(n: int, seed: int) -> Iterator[Any]:
    """Yield events of two overlapping classes, 1 of 20 of them of the rare one."""
    gauss = random.Random(seed).gauss
    for t in range(n):
        y = t % 20 == 0
        yield {"a": gauss(1.5 * y, 1.0), "b": gauss(1.5 * y, 1.0)}, y


def by_turns(n: int, seed: int) -> Iterator[Any]:
    """Yield events whose labels are chance for 1,000 events, then easy for 1,000, and again."""
    draws = random.Random(seed)
    for t in range(n):
        y = draws.random() < 0.5
        middle = (8 if y else -8) if t // 1000 % 2 else 0
        yield {"a": draws.gauss(middle, 1.0), "b": draws.gauss(0.0, 1.0)}, y


def stream(name: str, n: int, seed: int) -> list[Any]:
    """Return the first n events of a stream."""
    made: dict[str, Any] = {
        "Bananas": datasets.Bananas,
        "SEA": lambda: synth.SEA(seed=seed, noise=0.1),
        "Hyperplane": lambda: synth.Hyperplane(seed=seed, n_drift_features=2, mag_change=0.001),
        "RBF, drift": lambda: synth.RandomRBFDrift(
            seed_model=seed, seed_sample=seed, n_classes=5, change_speed=0.001
        ),
        "LED": lambda: synth.LED(seed=seed, noise_percentage=0.1),
        "reversed": lambda: reversed_halfway(n, seed),
        "rare": lambda: rare(n, seed),
        "by turns": lambda: by_turns(n, seed),
    }
    return list(itertools.islice(made[name](), n))


# Examples


def models(seed: int, size: int, **parameters: Any) -> dict[str, LASVMClassifier]:
    """Return a model for each way of choosing; `size` support vectors is the limit of the last."""
    rules = {"all": None, "random": Random(seed=seed), "active": Active()}
    rules |= {"autoactive": AutoActive()}
    found = {name: LASVMClassifier(selection=rule, **parameters) for name, rule in rules.items()}
    return found | {CAPPED: LASVMClassifier(max_support_vectors=size, **parameters)}


def on_stream(model: Any, events: list[Any]) -> tuple[float, ...]:
    """Return accuracy, balanced accuracy, support vectors and seconds of a model on a stream."""
    accuracy, balanced = metrics.Accuracy(), metrics.BalancedAccuracy()
    start = time.process_time()
    for x, y in events:
        predicted = model.predict_one(x)
        model.learn_one(x, y)
        if predicted is not None:
            accuracy.update(y, predicted)
            balanced.update(y, predicted)
    seconds = time.process_time() - start
    return 100 * accuracy.get(), 100 * balanced.get(), model.n_support_vectors, seconds


def examples(name: str, n: int, seeds: int) -> None:
    """Print a line for each way of choosing examples of a stream."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for seed in range(seeds):
        events, size = stream(name, n, seed), 2
        for rule in models(seed, size):
            figures = on_stream(models(seed, size)[rule], events)
            size = int(figures[2]) if rule == "active" else size
            found.setdefault(rule, []).append(figures)
    for rule, runs in found.items():
        accuracy, balanced, vectors, seconds = np.mean(runs, axis=0)
        cells = f"{accuracy:.1f}, balanced {balanced:.1f}, {vectors:.0f} SV, {seconds:.2f} s"
        print(f"{name}: {rule} {cells}", flush=True)


def gaussians() -> tuple[Any, ...]:
    """Return 10,000 training and 5,000 test rows of two Gaussians."""
    draws = np.random.default_rng(0)
    y = draws.random(15_000) < 0.5
    x = draws.normal(size=(15_000, 2)) + np.where(y, 1.2, -1.2)[:, None]
    return x[:10_000], y[:10_000], x[10_000:], y[10_000:], None


def tested(name: str, noise: float, C: float, seeds: int) -> None:
    """Print test errors after one pass, and after finishing, for each way of choosing."""
    made = {"adult": problems.adult, "usps": problems.usps, "gaussians": gaussians}
    x, y, x_test, y_test, kernel, *_ = made[name]()
    found: dict[str, list[tuple[float, ...]]] = {}
    for seed in range(seeds):
        draws, size = np.random.default_rng(seed), 2
        order = draws.permutation(len(y))
        labels = y[order] ^ (draws.random(len(y)) < noise)
        for rule in models(seed, size):
            model = models(seed, size, kernel=kernel, C=C)[rule]
            model.learn_many(x[order], labels)
            errors = [100 * np.mean(model.predict_many(x_test) != y_test)]
            model.finish()
            errors.append(100 * np.mean(model.predict_many(x_test) != y_test))
            size = model.n_support_vectors if rule == "active" else size
            found.setdefault(rule, []).append((*errors, model.n_support_vectors))
    for rule, runs in found.items():
        one_pass, finished, vectors = np.mean(runs, axis=0)
        cells = f"{one_pass:.2f}, finished {finished:.2f}, {vectors:.0f} SV"
        print(f"{name}, {noise:.0%} wrong, C {C:g}: {rule} {cells}", flush=True)


# Labels


def asked(events: list[Any], wrapper: Any, share: float) -> tuple[float, ...]:
    """Return accuracy, and how many too many were asked: at the end, and least and most before."""
    right, over, on_the_way = 0, 0.0, []
    for n, (x, y) in enumerate(events):
        predicted, ask = wrapper.predict_one(x)
        right += predicted == y
        over -= share
        if ask or (n < FIRST and not isinstance(wrapper, ActiveLearner)):
            over += 1.0
            wrapper.learn_one(x, y)
        on_the_way.append(over)
    return 100 * right / len(events), over, min(on_the_way[50:]), max(on_the_way[50:])


def entropy_sampler(events: list[Any], share: float, seed: int) -> Any:
    """Return River's EntropySampler that asks for about a share of these events."""

    def made(setting: float) -> Any:
        return active.EntropySampler(learner(), discount_factor=1.0 / setting, seed=seed)

    return made(searched(events, made, share, share, 100.0)[2])


def labels(name: str, share: float, n: int, seeds: int) -> None:
    """Print accuracy, and how far the number of questions was from the budget, by strategy."""
    for strategy in STRATEGIES:
        runs = []
        for seed in range(seeds):
            events = stream(name, n, seed)
            if strategy == "EntropySampler":
                wrapper = entropy_sampler(events, share, seed)
            else:
                wrapper = ActiveLearner(learner(), share, strategy, seed=seed)
            runs.append(asked(events, wrapper, share))
        accuracy, end, *_ = np.mean(runs, axis=0)
        least, most = min(run[2] for run in runs), max(run[3] for run in runs)
        cells = f"{accuracy:.1f}; too many: {end:.0f} at the end, {least:.0f} to {most:.0f} before"
        print(f"{name}, {share:.0%} of the labels: {strategy} {cells}", flush=True)


def main() -> None:
    """Print all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    for model in models(0, 20).values():
        on_stream(model, stream("Bananas", 300, 0))  # compiles
    for name in ("Bananas", "SEA", "Hyperplane", "reversed", "rare"):
        examples(name, given.events, given.seeds)
    for name, noise in (("adult", 0.0), ("usps", 0.1), ("gaussians", 0.1)):
        if name == "gaussians" or (problems.FOLDER / f"{name}_train.parquet").is_file():
            for C in (1.0, 100.0):
                tested(name, noise, C, given.seeds)
    for name in ("SEA", "Hyperplane", "RBF, drift", "LED", "reversed", "by turns"):
        for share in BUDGETS:
            labels(name, share, given.events, given.seeds)


if __name__ == "__main__":
    main()
