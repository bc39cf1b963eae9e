"""What is learnt: rows and labels in a seeded order, and what to test on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from benchmarks.golden import problems
from benchmarks.golden.problems import FOLDER


class Workload(NamedTuple):
    """A training set in the order in which it is learnt, a test set, and an RBF problem."""

    x: Any
    y: np.ndarray
    x_test: Any
    y_test: np.ndarray
    gamma: float
    C: float


class AbsentError(Exception):
    """Data or a library is not here."""


def _of_problem(problem: problems.Problem) -> Workload:
    order = np.random.default_rng(0).permutation(len(problem.y))
    x = np.ascontiguousarray(problem.x[order])
    return Workload(
        x, problem.y[order], problem.x_test, problem.y_test, problem.kernel.gamma, problem.C
    )


def paper(name: str) -> Workload:
    """One of the papers' problems, by its name in `benchmarks.golden.problems`."""
    if name != "waveform" and not FOLDER.exists():
        raise AbsentError(f"no data in {FOLDER}")
    return _of_problem(getattr(problems, name)())


def reuters() -> Workload:
    """Money-fx against the rest: sparse rows of unit length, as SciPy's CSR."""
    from scipy.sparse import csr_matrix

    if not FOLDER.exists():
        raise AbsentError(f"no data in {FOLDER}")
    parts = []
    for name in ("train", "test"):
        table = pq.read_table(FOLDER / f"reuters_moneyfx_{name}.parquet")
        places, values = (table.column(c).combine_chunks() for c in ("indices", "values"))
        arrays = (values.values.to_numpy(), places.values.to_numpy(), places.offsets.to_numpy())
        x = csr_matrix(arrays, shape=(len(table), 8316))
        parts.append((x, table.column("label").to_numpy() > 0))
    (x, y), (x_test, y_test) = parts
    order = np.random.default_rng(0).permutation(len(y))
    return Workload(x[order], y[order], x_test, y_test, 1.0, 1.0)


def covertype() -> Workload:
    """The second cover type or not: 16,000 of the first 20,000 rows, drawn, and standardised."""
    if not FOLDER.exists():
        raise AbsentError(f"no data in {FOLDER}")
    table = pq.read_table(FOLDER / "covtype_first20k.parquet")
    y = table.column("label").to_numpy() == 2
    names = [name for name in table.column_names if name != "label"]
    x = np.column_stack([table.column(name).to_numpy().astype(np.float32) for name in names])
    order = np.random.default_rng(0).permutation(len(y))
    x, y, n = x[order], y[order], 16_000
    spread = x[:n].std(axis=0)
    x = np.ascontiguousarray((x - x[:n].mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))
    return Workload(x[:n], y[:n], x[n:], y[n:], 0.05, 10.0)


def binary() -> Workload:
    """Sparse rows of 0 and 1 as of one-hot words, one label in ten True, some of them wrong."""
    n, n_test, d, rng = 40_000, 10_000, 300, np.random.default_rng(3)
    share = np.minimum(0.4, 0.25 / np.sqrt(np.arange(1, d + 1)))
    x = (rng.random((n + n_test, d)) < share).astype(np.float32)
    weight = rng.normal(size=d) * (rng.random(d) < 0.4)
    score = x @ weight + 1.5 * x[:, 0] * x[:, 3] - x[:, 5] * x[:, 2]
    steep = 6.0 * (score - np.quantile(score, 0.9))
    y = rng.random(n + n_test) < 1.0 / (1.0 + np.exp(-steep))
    return Workload(x[:n], y[:n], x[n:], y[n:], 0.05, 2.0)


def noisy_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Generate rows of Covertype's shape, and overlapping classes.

    Ten continuous features and two categories, of 4 and 40 values, one-hot: 44 binary features. The
    boundary bends with the continuous ones and is shifted by the categories; labels near it are
    drawn, so that no learner can get all of them right.
    """
    rng = np.random.default_rng(seed)
    x = np.zeros((n, 54), np.float32)
    x[:, :10] = rng.normal(size=(n, 10))
    popular = 1.0 / np.arange(1, 41)
    area, soil = rng.integers(4, size=n), rng.choice(40, size=n, p=popular / popular.sum())
    x[np.arange(n), 10 + area] = 1.0
    x[np.arange(n), 14 + soil] = 1.0
    shift = np.random.default_rng(7).normal(size=(4, 40))
    score = (
        np.sin(1.5 * x[:, 0])
        + 0.7 * x[:, 1] * x[:, 2]
        + np.abs(x[:, 3])
        - 0.8
        + 0.5 * x[:, 4]
        + 0.6 * shift[area, soil]
    )
    chance = 1.0 / (1.0 + np.exp(-STEEPNESS * score))
    return x, rng.random(n) < chance


STEEPNESS = 14.0
"""How fast labels become certain away from the boundary."""


def noisy(n: int) -> Workload:
    """`noisy_rows` with 20,000 more to test on."""
    x, y = noisy_rows(n + 20_000, seed=1)
    return Workload(x[:n], y[:n], x[n:], y[n:], 0.3, 3.0)
