"""A shard: rows that one worker has, learnt alone, then compared with models of all rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm.features import batches
from streamsvm.features.matrices import SparseMatrix
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.run.shards.problem import Examples, Expansion, Setting, measured
from streamsvm.run.shards.reading import Piece, Read, Reading, read
from streamsvm.run.shards.scale import moments_of, values_of
from streamsvm.solvers.linear import sums
from streamsvm.support.rows import Rows, SparseRows, joined


class Summary(NamedTuple):
    """What a shard tells before anything is learnt."""

    names: list[Name]  # its features, in the order in which they appear
    # Its labels, in the same order, and the numbers of rows of each: all, and with a weight.
    counts: list[tuple[Any, int, int]]
    n_nonzero: int
    is_sparse: bool  # it was read as sparse rows


class Shard:
    """Some rows of the data; what it is asked depends on nothing but the arguments.

    So a worker that died is replaced by a new one, which reads the rows again.
    """

    def __init__(self, reading: Reading, piece: Piece) -> None:
        self._reading, self._piece = reading, piece
        self._read: Read | None = None
        self._examples: Examples | None = None

    def describe(self) -> Summary:
        """Return what the rows are."""
        found = self._rows
        schema, n_nonzero = Schema(), 0
        for matrix in found.matrices:
            order = getattr(matrix, "order", None)
            schema.extend(matrix.names if order is None else order)
            n_nonzero += int(np.count_nonzero(np.nan_to_num(matrix.values)))
        codes, n = found.labels.codes, len(found.labels.values)
        counts = np.bincount(codes, minlength=n).tolist()
        weighted = np.bincount(codes[found.weights > 0.0], minlength=n).tolist()
        labels = [(y, counts[codes[i]], weighted[codes[i]]) for y, i in found.labels.present()]
        is_sparse = any(isinstance(m, SparseMatrix) for m in found.matrices)
        return Summary(list(schema.names), labels, n_nonzero, is_sparse)

    def values(self, names: list[Name], numbers: np.ndarray) -> np.ndarray:
        """Return features of those of the rows that have one of some numbers, float64 (n, d)."""
        found, first = [np.zeros((0, len(names)))], self._piece.first
        for matrix in self._rows.matrices:
            rows = values_of(matrix, names)
            found.append(rows[np.isin(np.arange(first, first + len(rows)), numbers)])
            first += len(rows)
        return np.concatenate(found)

    def moments(self, names: list[Name], low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the moments of features within limits: see `moments_of`."""
        return moments_of(self._rows.matrices, names, low, high)

    def learn(self, setting: Setting, most: int) -> np.ndarray:
        """Learn the rows alone; return the numbers of the support vectors.

        Of a shard of one class, which has none, they are up to `most` of the rows, evenly spread.
        """
        examples = self._scaled(setting)
        codes = examples.codes[examples.weights > 0.0]
        if not len(codes) or (codes == codes[0]).all():
            n = len(examples.codes)
            spread = np.linspace(0, max(0, n - 1), min(n, most))
            return examples.numbers[np.unique(spread.astype(int))]
        learner = setting.new_learner()
        examples.learnt_by(learner, setting)
        learner.finish()
        return Expansion.of(learner, setting).numbers

    def chosen(self, setting: Setting, numbers: np.ndarray) -> Examples:
        """Return those of the rows that have one of some numbers."""
        examples = self._scaled(setting)
        return examples.take(np.flatnonzero(np.isin(examples.numbers, numbers)))

    def evaluate(
        self, setting: Setting, model: Expansion, most: int, tau: float
    ) -> tuple[np.ndarray, int, Examples]:
        """Compare the rows with a model; return the sums of `measured`, and what the model lacks.

        That is how many rows without coefficients lack more than `tau` to a margin of 1, so that
        they would change the model, and up to `most` of them, those with the largest losses.
        """
        examples = self._scaled(setting)
        f = model.margins(setting.learner.kernel_, examples.rows)
        sums_of_all, gaps, lacks = measured(setting, model, examples, f)
        lacking = np.flatnonzero((lacks > tau) & (examples.weights > 0.0))
        order = np.argsort(-gaps[lacking], kind="stable")[:most]
        return sums_of_all, len(lacking), examples.take(np.sort(lacking[order]))

    def losses(
        self, setting: Setting, w: np.ndarray, towards: np.ndarray, steps: np.ndarray
    ) -> np.ndarray:
        """Return the losses at w and after each of some steps towards other weights, summed."""
        y, costs, rows = self._signed(setting)
        f, rise = np.zeros(len(y)), np.zeros(len(y))
        sums.margins_of(rows, w, f)
        sums.margins_of(rows, towards - w, rise)
        short, rise = 1.0 - y * f, y * rise
        return np.array([costs @ np.maximum(0.0, short - k * rise) for k in steps.tolist()])

    def cutting_plane(self, setting: Setting, w: np.ndarray) -> np.ndarray:
        """Return the plane ``<a, w> + b`` that touches the loss of a linear model at w.

        float64 (d + 3,): a, b, and how many rows lose.
        """
        y, costs, rows = self._signed(setting)
        f, a = np.zeros(len(y)), np.zeros(len(w))
        sums.margins_of(rows, w, f)
        losing = costs * (1.0 - y * f > 0.0)
        sums.add_rows(rows, -y * losing, a)
        return np.append(a, [losing.sum(), np.count_nonzero(losing)])

    def _signed(self, setting: Setting) -> tuple[np.ndarray, np.ndarray, Rows]:
        """Return y = -1 or +1, C_i, and the rows."""
        examples = self._scaled(setting)
        targets = setting.new_learner().targets
        signs = np.array([2.0 * targets.number_of(label) - 1.0 for label in setting.labels])
        costs = setting.costs[examples.codes] * examples.weights
        return signs[examples.codes], costs, examples.rows

    @property
    def _rows(self) -> Read:
        self._read = self._read or read(self._reading, self._piece)
        return self._read

    def _scaled(self, setting: Setting) -> Examples:
        """Return the rows as they are learnt, which take the place of those read."""
        if self._examples is not None:
            return self._examples
        found, d = self._rows, len(setting.names)
        schema = Schema()
        schema.extend(setting.names)
        blocks: list[Rows] = [np.zeros((0, d), np.float32)]
        if setting.is_sparse:
            nothing = np.zeros(0, np.int32), np.zeros(0, np.float32)
            blocks = [SparseRows(np.zeros(1, np.int64), *nothing, d)]
        for matrix in found.matrices:
            if setting.scaler is not None:
                matrix = setting.scaler.transform_matrix(matrix)
            blocks.append(batches.known_rows(schema, matrix, setting.is_sparse))
        numbers = self._piece.first + np.arange(len(found.weights))
        codes = found.labels.places_in(setting.labels)
        self._examples = Examples(numbers, joined(blocks, d), codes, found.weights)
        self._read = None
        return self._examples
