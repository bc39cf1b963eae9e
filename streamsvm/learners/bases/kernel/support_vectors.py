"""The results of `support_vectors`, by what the margins of a kernel model mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.labels.label_column import Label
from streamsvm.labels.targets import Targets
from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.models.kernel.lasvm_solver import PairsSolver
from streamsvm.models.outputs import Scores
from streamsvm.support.rows import Rows, SparseRows


class SupportVectors(NamedTuple):
    """The support vectors of f(x) = sum_s coefficient_s k(x, row_s) + bias."""

    features: list[Name]  # names of the columns of `rows`
    rows: Any  # float32 (n, d); a scipy.sparse.csr_array if the learner's rows are sparse
    coefficients: np.ndarray  # float64 (n,), signed: positive for the positive label
    labels: list[Label]  # label of each
    entered: np.ndarray  # int64 (n,): the number of the example, from 1, or the id given with it;
    # for a vector merged from several examples, minus the number of the newest


class SupportPatterns(NamedTuple):
    """The support patterns of a `LaRankClassifier`, in the order in which they entered the model.

    Attributes
    ----------
    feature_names
        The names of the d columns of `rows`.
    rows
        float32 (n, d), or a SciPy CSR matrix if the model stores sparse rows.
    coefficients
        float64 (n, classes): the coefficients b_i^c.
    labels
        The n labels.
    classes
        The class of each column of `coefficients`.

    """

    feature_names: list[Name]
    rows: Any
    coefficients: np.ndarray
    labels: list[Label]
    classes: list[Label]


class ProblemVectors(NamedTuple):
    """The support vectors of a `LASVMClassifier` of three or more classes."""

    features: list[Name]  # names of the columns of `rows`
    rows: Any  # float32 (n, d); a scipy.sparse.csr_array if the learner's rows are sparse
    coefficients: np.ndarray  # float64 (n, problems), positive for the problem's first label
    labels: list[Label]  # label of each
    entered: np.ndarray  # int64 (n,): the number of the example, from 1, or the id given with it
    problems: list[tuple[Label, Label]]  # the two labels of each problem; None: all other labels


Vectors = SupportVectors | SupportPatterns | ProblemVectors


def vectors_of(model: KernelModel | None, schema: Schema, targets: Targets) -> Vectors:
    """Return copies of the support vectors of a model, in the order in which they entered it."""
    # Hashed features have columns, but no names.
    seen, names, d = list(targets.labels.seen), list(schema.names), len(schema)
    has_scores = model is not None and isinstance(model.outputs, Scores)
    if model is None or model.state is None:
        none = no_patterns(names, d, seen)
        if has_scores:
            return none
        return SupportVectors(names, none.rows, np.zeros(0), [], np.zeros(0, np.int64))
    state, (rows, found, entered) = model.state, model.unscaled_expansion(d)
    if has_scores:
        expansion, y = (rows, found, entered), state.y
        return patterns_of(names, expansion, np.flatnonzero(entered), lambda s: seen[y[s]], seen)
    if model.outputs.has_one_margin:
        return in_order(names, rows, targets.direction * found, entered, targets.label_of_decision)
    assert isinstance(model.solver, PairsSolver)
    problems = model.solver.labels_of(seen)
    return _in_problems(names, rows, found, entered, (state.y, seen), problems)


def patterns_of(
    names: list[Name],
    expansion: tuple[Rows, np.ndarray, np.ndarray],
    kept: np.ndarray,
    label_of: Callable[[int], Label],
    seen: list[Label],
) -> SupportPatterns:
    """Return the patterns in some slots of an expansion, in the order in which they entered it.

    `label_of` returns the label of a slot, and `seen` are the classes.
    """
    rows, found, entered = expansion
    kept = kept[np.argsort(entered[kept], kind="stable")]
    labels = [label_of(s) for s in kept.tolist()]
    return SupportPatterns(names, as_matrix(rows)[kept], found[kept, : len(seen)], labels, seen)


def no_patterns(names: list[Name], d: int, seen: list[Label]) -> SupportPatterns:
    """Return the result of `patterns_of` for a model of d features that keeps none."""
    rows = np.zeros((0, d), np.float32)
    return SupportPatterns(names, rows, np.zeros((0, len(seen))), [], seen)


def in_order(
    features: list[Name],
    rows: Rows,
    alpha: np.ndarray,
    entered: np.ndarray,
    label: Callable[[float], Label],
) -> SupportVectors:
    """Return the support vectors (alpha not 0), in the order in which they entered the model.

    `label` is what a coefficient is positive for, or negative.
    """
    kept = np.flatnonzero(alpha)
    kept = kept[np.argsort(np.abs(entered[kept]), kind="stable")]
    labels = [label(a) for a in alpha[kept].tolist()]
    return SupportVectors(features, as_matrix(rows)[kept], alpha[kept], labels, entered[kept])


def _in_problems(
    features: list[Name],
    rows: Rows,
    found: np.ndarray,
    entered: np.ndarray,
    labels: tuple[np.ndarray, list[Label]],
    problems: list[tuple[Label, Label]],
) -> ProblemVectors:
    """Return the support vectors of several problems, in the order in which they entered the model.

    `found` are the coefficients, float64 (n, problems), and `labels` the class of each row and the
    labels of the classes.
    """
    kept = np.flatnonzero(np.abs(found).max(axis=1, initial=0.0))
    kept = kept[np.argsort(np.abs(entered[kept]), kind="stable")]
    own = [labels[1][c] for c in labels[0][kept].tolist()]
    return ProblemVectors(
        features, as_matrix(rows)[kept], found[kept], own, entered[kept], problems
    )


def as_matrix(rows: Rows) -> Any:
    """Return rows as an array, or as SciPy's sparse array."""
    if not isinstance(rows, SparseRows):
        return rows
    from scipy.sparse import csr_array

    shape = (rows.start.size - 1, rows.d)
    return csr_array((rows.values, rows.columns, rows.start), shape=shape)
