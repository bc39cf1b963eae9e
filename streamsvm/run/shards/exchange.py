"""What the coordinator and the shards send each other: names, numbers and arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from connectors.identity import FileIdentity
from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.features.names import Name
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.lasvm import LASVMClassifier
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.support.rows import Rows, SparseRows, joined, taken

REST = -1
"""In a problem of one class against the rest, the code of the others."""


class Reading(NamedTuple):
    """How files are read: the arguments of `ParquetSource`."""

    path: str
    target: str
    options: dict[str, Any]
    may_lack: bool = False  # missing numbers count as 0


class Piece(NamedTuple):
    """Rows `first` .. `stop` - 1 of a file; `number` is that of the first one in all the data."""

    file: str
    first: int
    stop: int
    number: int
    identity: FileIdentity  # of the file, when the training began
    folders: dict[str, Any]  # columns that the names of its folders give


class ShardSummary(NamedTuple):
    """What a shard tells before anything is learnt."""

    names: list[Name]  # its features, in the order in which they appear
    # Its labels, in the same order, and the numbers of rows of each: all, and with a weight.
    counts: list[tuple[Any, int, int]]
    n_rows: int
    n_nonzero: int
    is_sparse: bool  # it was read as sparse rows
    scaler: StandardScaler | None  # which has learnt its rows


class Setting(NamedTuple):
    """What all shards agree on."""

    names: list[Name]
    labels: list[Any]
    costs: np.ndarray  # float64: C times the class weight, of each label
    is_sparse: bool
    learner: Any  # a `LASVMClassifier` or `SVMSGDClassifier` that has learnt nothing
    scaler: StandardScaler | None  # which has learnt the rows of all shards

    @property
    def targets(self) -> Any:
        """What the labels are for the learner."""
        return self.learner.targets.having(self.learner.targets.labels.having(self.labels))

    def new_learner(self) -> Any:
        """Return a learner that has learnt nothing, but knows all features and labels."""
        learner = self.learner.clone()
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
        return cls(
            np.concatenate([part.numbers for part in parts]),
            joined([part.rows for part in parts], len(setting.names)),
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.weights for part in parts]),
        )


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


class Evaluation(NamedTuple):
    """What a shard finds about a model: sums over its rows and problems, and what the model lacks.

    `sums` are those of `measuring.Measured`.
    """

    sums: np.ndarray
    n_violating: int  # rows without coefficients that would change the model
    worst: Examples  # those of them with the largest losses


class CuttingPlane(NamedTuple):
    """The loss of a shard's rows at w, as the plane ``<a, w> + b`` that touches it there."""

    a: np.ndarray  # float64 (d + 1,)
    b: float
    n_losing: int
    cost: float  # sum of C_i


def size_of(content: Any) -> int:
    """Return the bytes of the arrays in something that is sent."""
    if isinstance(content, np.ndarray):
        return content.nbytes
    return sum(map(size_of, content)) if isinstance(content, tuple) else 0
