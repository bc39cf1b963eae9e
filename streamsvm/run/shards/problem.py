"""The SVM of all rows: what shards agree on, rows of it, a model of it, and the gap of the model.

What is here is sent between the coordinator and the shards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.features.names import Name
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.lasvm import LASVMClassifier
from streamsvm.learners.sgd import SVMSGDClassifier
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.solvers.incremental.kept import write_row
from streamsvm.support import stores
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.kernel_rows.fresh_block import BLOCK, fill_values
from streamsvm.support.rows import Rows, SparseRows, cut, dense, joined, shape, taken

REST = -1
"""In a problem of one class against the rest, the code of the others."""


L = TypeVar("L", LASVMClassifier, SVMSGDClassifier)
"""The learners that shards train."""


@dataclass(frozen=True)
class Setting(Generic[L]):
    """What all shards agree on."""

    names: list[Name]
    labels: list[Any]
    costs: np.ndarray  # float64: C times the class weight, of each label
    is_sparse: bool
    learner: L  # it has learnt nothing
    scaler: StandardScaler | None  # which has the moments of all rows

    def new_learner(self) -> L:
        """Return a learner that has learnt nothing, but knows all features and labels."""
        learner: L = self.learner.clone()
        # In the order of the rows that are sent: its own would be another one.
        learner.schema.extend(self.names)
        learner.know_labels(self.labels)
        return learner


class Examples(NamedTuple):
    """Rows with all that is needed to learn them."""

    numbers: np.ndarray  # int64 (n,): counted from 1 over all the data
    rows: Rows  # scaled, over the features of the setting
    codes: np.ndarray  # int64 (n,): indices in the labels of the setting
    weights: np.ndarray  # float64 (n,)

    def take(self, kept: np.ndarray) -> Examples:
        """Return some of them."""
        rows: Any = taken(self.rows, kept)
        return Examples(self.numbers[kept], rows, self.codes[kept], self.weights[kept])

    def learnt_by(self, learner: LASVMClassifier, setting: Setting) -> None:
        """Let a learner learn them."""
        labels = LabelColumn(self.codes, setting.labels)
        learner.learn_many(self.matrix(setting), labels, self.weights, self.numbers)

    def matrix(self, setting: Setting) -> Matrix | SparseMatrix:
        """Return the rows as a batch."""
        if isinstance(self.rows, SparseRows):
            return SparseMatrix(setting.names, self.rows)
        return Matrix(setting.names, self.rows, None, is_finite=True)

    @classmethod
    def joined(cls, parts: list[Examples], setting: Setting) -> Examples:
        """Return all of them, in their order."""
        numbers, rows, codes, weights = zip(*parts, strict=True)
        blocks = joined(list(rows), len(setting.names))
        return cls(np.concatenate(numbers), blocks, np.concatenate(codes), np.concatenate(weights))


class Expansion(NamedTuple):
    """The decision function of each problem: sum_s coefficients[s] k(rows[s], x) + bias."""

    numbers: np.ndarray  # int64 (n,), ascending
    rows: Rows
    coefficients: np.ndarray  # float64 (n, problems)
    problems: np.ndarray  # int64 (problems, 2): codes of the positive label and of the other
    biases: np.ndarray  # float64 (problems,)

    @classmethod
    def of(cls, learner: LASVMClassifier, setting: Setting) -> Expansion:
        """Return that of a learner that has learnt two labels or more."""
        rows, found, numbers = learner.model.expansion()
        found = found.reshape(len(numbers), -1)
        kept = np.flatnonzero(np.abs(found).max(axis=1, initial=0.0))
        kept = kept[np.argsort(numbers[kept])]
        code = {label: c for c, label in enumerate(setting.labels)}
        bias = learner.bias
        if not isinstance(bias, dict):
            first, second = learner.classes
            bias = {(second, first): learner.solver.biases[0]}
        problems = [(code[a], REST if b is None else code[b]) for a, b in bias]
        some: Any = taken(rows, kept)
        return cls(
            numbers[kept], some, found[kept], np.array(problems), np.array(list(bias.values()))
        )

    def margins(self, kernel: Any, x: Rows) -> np.ndarray:
        """Return f(x) of rows, float64 (n, problems): kernel values in single precision."""
        (n, d), m = shape(x), len(self.numbers)
        f = np.tile(self.biases, (n, 1))
        if not m or not n:
            return f
        store = stores.filled(stores.new_store(m, d, isinstance(x, SparseRows)), self.rows)
        own, values = bound(kernel, store), np.zeros((BLOCK, len(store.entered)), np.float32)
        for first in range(0, n, BLOCK):
            some = cut(x, first, min(n, first + BLOCK))
            fill_values(own, store, some, np.int64(0), np.int64(m), values)
            part = f[first : first + BLOCK]
            part += values[: len(part), :m] @ self.coefficients
        return f

    def margins_in_double(self, kernel: Any, x: Rows) -> np.ndarray:
        """Return the same with kernel values in double precision, row by row: for a few rows."""
        columns = np.ascontiguousarray(dense(self.rows).T, np.float64)
        values = np.zeros(len(self.numbers))
        f = np.tile(self.biases, (shape(x)[0], 1))
        for r, row in enumerate(dense(x).astype(np.float64)):
            write_row(kernel, columns, len(values), row, values)
            f[r] += values @ self.coefficients
        return f


def measured(
    setting: Setting, model: Expansion, examples: Examples, f: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compare rows with a model, given their f(x), float64 (n, problems).

    The gap is the sum of ``C_i max(0, 1 - y_i f_i) - |a_i| (1 - y_i f_i)``, no term of which is
    below 0: nothing cancels.

    Returns sums over rows and problems, float64 (4,): gap, loss, |a_i|, and a_i (f_i - b). The gap
    of each row. And what its margin lacks to 1, at most over its problems; of a row that the model
    has, this is -inf.
    """
    n = len(examples.numbers)
    place = np.searchsorted(model.numbers, examples.numbers) % max(1, len(model.numbers))
    is_kept = np.zeros(n, bool)
    if len(model.numbers):
        is_kept = model.numbers[place] == examples.numbers
    costs = setting.costs[examples.codes] * examples.weights
    sums, gaps, lacks = np.zeros(4), np.zeros(n), np.full(n, -np.inf)
    for p, (positive, negative) in enumerate(model.problems.tolist()):
        is_own = examples.codes == positive
        about = np.flatnonzero(is_own | (examples.codes == negative) | (negative == REST))
        y, own = np.where(is_own[about], 1.0, -1.0), f[about, p]
        a = np.zeros(len(about))
        kept = is_kept[about]
        a[kept] = model.coefficients[place[about[kept]], p]
        short = 1.0 - y * own
        loss = costs[about] * np.maximum(0.0, short)
        gap = loss - a * y * short
        sums += gap.sum(), loss.sum(), (a * y).sum(), (a * (own - model.biases[p])).sum()
        gaps[about] += gap
        lacks[about] = np.maximum(lacks[about], short)
    lacks[is_kept] = -np.inf
    return sums, gaps, lacks
