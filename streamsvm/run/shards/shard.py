"""A shard: rows that one worker has, learnt alone, then compared with the united model."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.features import batches
from streamsvm.features.matrices import SparseMatrix
from streamsvm.features.schema import Schema
from streamsvm.learners.lasvm import LASVMClassifier
from streamsvm.models.outputs import sides_of
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.shards.exchange import (
    CuttingPlane,
    Evaluation,
    Examples,
    Expansion,
    Piece,
    Reading,
    Setting,
    ShardSummary,
)
from streamsvm.run.shards.far_values import Limits, middles_of, moments_within
from streamsvm.run.shards.margins import margins_of
from streamsvm.run.shards.measuring import measured
from streamsvm.run.shards.reading import Read, read
from streamsvm.solvers.linear import sums
from streamsvm.support.rows import SparseRows, joined


class Shard:
    """Some rows of the data; what it is asked depends on nothing but the arguments.

    So a worker that died is replaced by a new one, which reads the rows again.
    """

    def __init__(self, reading: Reading, pieces: list[Piece]) -> None:
        self._reading, self._pieces = reading, pieces
        self._read: Read | None = None
        self._examples: Examples | None = None

    def describe(self, learner: LASVMClassifier, scaler: StandardScaler | None) -> ShardSummary:
        """Read the rows; return what they are."""
        found = self._read = read(self._reading, self._pieces, learner)
        # Without limits, which depend on the rows before: mean and variance of all values.
        own = None if scaler is None else scaler.clone({"clip": None})
        schema, n_nonzero = Schema(), 0
        for matrix in found.matrices:
            if own is not None:
                own.learn_transform_many(matrix)
            order = getattr(matrix, "order", None)
            schema.extend(matrix.names if order is None else order)
            n_nonzero += int(np.count_nonzero(np.nan_to_num(matrix.values)))
        codes, n = found.labels.codes, len(found.labels.values)
        counts = np.bincount(codes, minlength=n).tolist()
        weighted = np.bincount(codes[found.weights > 0.0], minlength=n).tolist()
        labels = [(y, counts[codes[i]], weighted[codes[i]]) for y, i in found.labels.present()]
        is_sparse = any(isinstance(m, SparseMatrix) for m in found.matrices)
        return ShardSummary(
            list(schema.names), labels, len(found.labels), n_nonzero, is_sparse, own
        )

    def moments(self, learner: LASVMClassifier, limits: Limits) -> np.ndarray:
        """Return the moments of the values within limits: see `moments_within`."""
        return moments_within(self._matrices(learner), limits)

    def middles(self, learner: LASVMClassifier, limits: Limits) -> np.ndarray:
        """Return the medians of the features: see `middles_of`."""
        return middles_of(self._matrices(learner), limits.names)

    def learn(self, setting: Setting, most: int) -> Examples:
        """Learn the rows alone; return the support vectors.

        Of a shard of one class, which has none, they are up to `most` of the rows, evenly spread.
        """
        examples = self._rows(setting)
        codes = examples.codes[examples.weights > 0.0]
        if not len(codes) or (codes == codes[0]).all():
            n = len(examples.codes)
            spread = np.linspace(0, max(0, n - 1), min(n, most))
            return examples.take(np.unique(spread.astype(int)))
        learner = setting.new_learner()
        examples.learnt_by(learner, setting)
        learner.finish()
        numbers = Expansion.of(learner, setting).numbers
        return examples.take(np.searchsorted(examples.numbers, numbers))

    def chosen(self, setting: Setting, numbers: np.ndarray) -> Examples:
        """Return those of the rows that have one of some numbers."""
        examples = self._rows(setting)
        return examples.take(np.flatnonzero(np.isin(examples.numbers, numbers)))

    def evaluate(self, setting: Setting, model: Expansion, most: int, tau: float) -> Evaluation:
        """Compare the rows with a model: see `Evaluation`. `worst` are `most` rows at most.

        A row violates optimality if it lacks more than `tau` to a margin of 1.
        """
        examples = self._rows(setting)
        f = margins_of(setting.learner.kernel_, model, examples.rows)
        found = measured(setting, model, examples, f)
        lacks = ~found.is_kept & (found.short > tau) & (examples.weights > 0.0)
        lacking = np.flatnonzero(lacks)
        order = np.argsort(-found.gaps[lacking], kind="stable")[:most]
        worst = examples.take(np.sort(lacking[order]))
        return Evaluation(found.sums, len(lacking), worst)

    def _matrices(self, learner: LASVMClassifier) -> list[Any]:
        self._read = self._read or read(self._reading, self._pieces, learner)
        return self._read.matrices

    # Of linear models

    def losses(
        self, setting: Setting, w: np.ndarray, towards: np.ndarray, steps: np.ndarray
    ) -> np.ndarray:
        """Return the summed losses at w and after each of some steps towards other weights."""
        examples, y, costs = self._signed(setting)
        f, rise = np.zeros(len(y)), np.zeros(len(y))
        sums.margins_of(examples.rows, w, f)
        sums.margins_of(examples.rows, towards - w, rise)
        short, rise = 1.0 - y * f, y * rise
        return np.array([costs @ np.maximum(0.0, short - k * rise) for k in steps.tolist()])

    def cutting_plane(self, setting: Setting, w: np.ndarray) -> CuttingPlane:
        """Return the loss as a plane that touches it at w."""
        examples, y, costs = self._signed(setting)
        f, a = np.zeros(len(y)), np.zeros(len(w))
        sums.margins_of(examples.rows, w, f)
        losing = costs * (1.0 - y * f > 0.0)
        sums.add_rows(examples.rows, -y * losing, a)
        return CuttingPlane(
            a, float(losing.sum()), int(np.count_nonzero(losing)), float(costs.sum())
        )

    def _signed(self, setting: Setting) -> tuple[Examples, np.ndarray, np.ndarray]:
        """Return the rows, y = -1 or +1, and C_i."""
        examples = self._rows(setting)
        sides = sides_of(np.array([setting.targets.number_of(y) for y in setting.labels]))
        costs = setting.costs[examples.codes] * examples.weights
        return examples, sides[examples.codes], costs

    def _rows(self, setting: Setting) -> Examples:
        if self._examples is not None:
            return self._examples
        found = self._read or read(self._reading, self._pieces, setting.learner)
        schema = Schema()
        schema.extend(setting.names)
        blocks = []
        for matrix in found.matrices:
            if setting.scaler is not None:
                matrix = setting.scaler.transform_matrix(matrix)
            blocks.append(batches.known_rows(schema, matrix, setting.is_sparse))
        d = len(setting.names)
        empty = np.zeros((0, d), np.float32)
        if setting.is_sparse:
            nothing = np.zeros(0, np.int32), np.zeros(0, np.float32)
            blocks.append(SparseRows(np.zeros(1, np.int64), *nothing, d))
        rows = joined(blocks or [empty], d)
        numbers = [np.arange(p.number, p.number + p.stop - p.first) for p in self._pieces]
        self._examples = Examples(
            np.concatenate([np.zeros(0, np.int64), *numbers]),
            rows,
            found.labels.places_in(setting.labels),
            found.weights,
        )
        self._read = None
        return self._examples
