"""The gap of examples left out, with those of the reserve computed: the interval must cover it."""

import random

import numpy as np
import pytest

from streamsvm import LASVMClassifier, kernels
from streamsvm.monitor import gap
from streamsvm.monitor.sample import ReservoirSample

N, N_SEEDS = 1500, 200


def rows(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (N, 2)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] ** 2 + rng.normal(scale=0.2, size=N) > 0.3).astype(int)
    return x, y


def loss(classes, margins):
    """Return the summed hinge loss of the model that predicts."""
    return np.maximum(0.0, 1.0 - np.where(classes == 1.0, 1.0, -1.0) * margins).sum()


@pytest.mark.parametrize(
    ("reserve", "n_of_reserve", "narrower"), [(None, 2000, 0.3), (900, 2000, 0.8), (None, 300, 0.7)]
)
def test_the_interval_covers_and_is_narrower(reserve, n_of_reserve, narrower):
    x, y = rows()
    model = LASVMClassifier(kernels.RBF(gamma=2.0), reserve=reserve)
    model.learn_many(x, y)
    classes = np.array([model.targets.number_of(label) for label in y])
    margins = model.margins_of(x)
    numbers = np.arange(1, N + 1)
    truth = (0.5 * model.squared_norm - model.dual + loss(classes, margins)) / N
    covered, widths = 0, []
    for seed in range(N_SEEDS):
        sample = ReservoirSample(100, None, seed)
        sample.offer(x, classes, np.ones(N), numbers)
        found = [
            gap.measured(model, sample, 100, 0, random.Random(seed), n) for n in (n_of_reserve, 0)
        ]
        low, high = found[0]["gap_low"] - 1e-9, found[0]["gap_high"] + 1e-9
        covered += low <= truth <= high
        widths.append([values["gap_high"] - values["gap_low"] for values in found])
    # 95 % of the seeds, less three standard deviations.
    assert covered >= 181
    with_reserve, without = np.mean(widths, axis=0)
    assert with_reserve < narrower * without


def test_examples_from_before_the_monitor_are_no_part_of_it():
    x, y = rows()
    model = LASVMClassifier(kernels.RBF(gamma=2.0))
    model.learn_many(x, y)
    numbers = model.reserve_sample(10, 1000, random.Random(0))[3]
    assert len(numbers) > 20 and numbers.min() > 1000
    assert not np.isin(numbers, model.kept_numbers()).any()


def test_examples_that_came_more_than_once_are_not_counted_once():
    x, y = rows()
    model = LASVMClassifier(kernels.RBF(gamma=2.0), reserve=2 * N)
    for _ in range(2):
        model.learn_many(x, y, ids=np.arange(1, N + 1))
    assert model.solver.kept_rows.n_rows == 2 * N
    assert len(model.reserve_sample(10, 0, random.Random(0))[3]) == 0
