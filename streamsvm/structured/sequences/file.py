"""What model files hold of a learner of label sequences, and the checks of what they hold.

All features are written, also those without a weight: sums are taken in the order in which features
came first, so that a learner from a file goes on exactly as the one that was saved. Of weights and
coefficients the nonzero ones are written, with the lengths of their rows. Support vectors are
written as lists by sentence, since a chain of numbers from a file could go in circles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm import kernels
from streamsvm.model_files.codec import Content, labels_in
from streamsvm.structured import vocabulary
from streamsvm.structured.sequences import sentence_patterns
from streamsvm.structured.sequences.inference import Exact, Greedy, SequenceSolver
from streamsvm.structured.sequences.kernel_inference import KernelGreedy
from streamsvm.structured.sequences.learner import SequenceLearner
from streamsvm.structured.sequences.model import INFO, LARANK
from streamsvm.support import states, stores
from streamsvm.support.active_set import ActiveSet
from streamsvm.support.declaration import (
    COUNT,
    FINITE,
    NOT_NEGATIVE,
    Field,
    NamedArrays,
    Range,
    Record,
    as_int,
)
from streamsvm.support.rows import SparseRows
from streamsvm.support.state_arrays import as_arrays, from_arrays

_INFO = Record(INFO)
_LENGTH = Range(0, 2**31)
_DRAWS = Range(1)


class _Array(NamedTuple):
    """An array of a file: a part of the learner's own, written from there, and read into it."""

    part: np.ndarray
    range: Range = FINITE
    is_sparse: bool = False  # of a matrix only the nonzero entries are in the file


def _arrays_of(solver: SequenceSolver, d: int, k: int, n: int) -> dict[str, _Array]:
    """Return the arrays of d features, k labels and n slots by their names in files."""
    model, patterns = solver.model, solver.patterns
    has_weights = not isinstance(solver, KernelGreedy)
    found = {"draws": _Array(solver.draws, _DRAWS), "moves": _Array(model.moves[:, : k + 1, :k])}
    if has_weights:
        found["weights"] = _Array(model.weights[:d, :k], is_sparse=True)
    if solver.is_averaged:
        found["late"] = _Array(model.late[:d, :k], is_sparse=True)
        found["late_moves"] = _Array(model.late_moves[:, : k + 1, :k])
    if solver.schedule.method != LARANK:
        return found
    found["look_draws"] = _Array(model.look_draws, _DRAWS)
    found["entered"] = _Array(patterns.store.entered[:n], COUNT)
    found["cost"] = _Array(patterns.cost[:n], NOT_NEGATIVE)
    if isinstance(solver, Exact):
        return found
    found["past"] = _Array(patterns.past[:n], Range(0, k))
    found["beta"] = _Array(patterns.beta[:n, :k], is_sparse=True)
    label = _Array(patterns.label[:n], Range(0, max(0, k - 1)))
    if has_weights:
        return found | {"pattern_labels": label}
    found["f"] = _Array(patterns.f[:k, :n])
    return found | {"label": label, "diagonal": _Array(patterns.diagonal[:n], NOT_NEGATIVE)}


def _small(n: int) -> Any:
    """Return a dtype of whole numbers below n."""
    return np.uint8 if n <= 256 else np.int32


def _put(arrays: dict[str, np.ndarray], name: str, matrix: np.ndarray) -> None:
    """Add the nonzero entries of a matrix to the arrays of a file."""
    rows, columns = np.nonzero(matrix)
    arrays[f"{name}_lengths"] = np.bincount(rows, minlength=len(matrix)).astype(np.int32)
    arrays[f"{name}_columns"] = columns.astype(_small(matrix.shape[1]))
    arrays[f"{name}_values"] = matrix[rows, columns]


def _take(arrays: NamedArrays, name: str, matrix: np.ndarray) -> None:
    """Set the nonzero entries of a matrix by the arrays of a file."""
    n, d = matrix.shape
    lengths = arrays.take(f"{name}_lengths", Field((n,), np.int32, range=Range(0, d)), {})
    total = int(lengths.sum())
    at = Field((total,), _small(d), range=Range(0, d - 1))
    columns = arrays.take(f"{name}_columns", at, {})
    values = arrays.take(f"{name}_values", Field((total,), matrix.dtype), {})
    matrix[np.repeat(np.arange(n), lengths), columns] = values


# Writing


def _more(learner: SequenceLearner) -> Content:
    """Return the content of a file beside the parameters."""
    solver, d, k = learner.solver, learner.n_features, learner.targets.n_classes
    content: dict[str, Any] = {
        "info": _INFO.as_json(solver.model.info),
        "n_ignored": int(learner.vocabulary.counts[1]),
    }
    arrays, n = {"keys": vocabulary.keys_of(learner.vocabulary, d)}, 0
    if solver.schedule.method == LARANK:
        n = int(solver.patterns.active.counts[0].n)
        record, active = as_arrays(solver.patterns.active, {"features": 1})
        content |= record
        arrays |= active | _rows_as_arrays(solver, n, d)
    for name, array in _arrays_of(solver, d, k, n).items():
        if array.is_sparse:
            _put(arrays, name, array.part)
        else:
            arrays[name] = array.part
    return content, arrays


def _rows_as_arrays(solver: SequenceSolver, n: int, d: int) -> dict[str, np.ndarray]:
    """Return the features of n patterns; with exact inference their tokens and vectors, too."""
    rows = stores.rows_of(solver.patterns.store, n, d)
    if not isinstance(rows, SparseRows):
        return {"rows": rows}
    # Numbers of 32 bits by their bytes, the lowest first: that is compressed better.
    columns = rows.columns.astype("<i4").view(np.uint8).reshape(-1, 4).T
    arrays = {"pattern_lengths": np.diff(rows.start), "pattern_column_bytes": columns}
    if not (rows.values == 1.0).all():
        arrays["pattern_values"] = rows.values
    return arrays | (_sentence_arrays(solver.patterns, n) if isinstance(solver, Exact) else {})


def _sentence_arrays(patterns: Any, n: int) -> dict[str, np.ndarray]:
    """Return the tokens of n sentences, and their support vectors."""
    none = np.zeros(0, np.int32)
    tokens, labels, betas, counts = [none], [none], [], np.zeros(n, np.int32)
    for slot in range(n):
        tokens.append(_list_of(patterns.lengths, slot))
        v = patterns.head[slot]
        while v != sentence_patterns.NONE:
            counts[slot] += 1
            betas.append(patterns.beta[v])
            labels.append(_list_of(patterns.labels, v))
            v = patterns.next[v]
    return {
        "sentence_lengths": patterns.lengths.length[:n].copy(),
        "token_lengths": np.concatenate(tokens),
        "vector_counts": counts,
        "beta": np.array(betas, np.float64),
        "vector_labels": np.concatenate(labels),
    }


def _list_of(lists: Any, i: int) -> np.ndarray:
    found: np.ndarray = lists.numbers[lists.start[i] : lists.start[i] + lists.length[i]]
    return found


# Reading


def _read_more(learner: SequenceLearner, content: dict[str, Any], arrays: NamedArrays) -> None:
    """Set on a new learner what `_more` returned."""
    solver, targets = learner.solver, learner.targets
    targets = targets.having(labels_in(content, targets.labels.most))
    d = arrays.length_of("keys", 0)
    if d > learner.most_features:
        raise ValueError("there are more features than max_features")
    keys = arrays.take("keys", Field((d,), np.uint64, range=Range(0)), {})
    learner.vocabulary = vocabulary.with_keys(keys)
    if vocabulary.size(learner.vocabulary) != d:
        raise ValueError("keys: two are equal")
    learner.grow(max(1, d), targets.labels.seen)
    learner.targets, learner.n_known_features = targets, d
    learner.vocabulary.counts[1] = as_int("n_ignored", content.get("n_ignored"), 0)
    for name, value in _INFO.checked("info", content.get("info"), {}).items():
        solver.model.info[0][name] = value
    n = 0
    if solver.schedule.method == LARANK:
        n = arrays.length_of("place", 0)
        solver.patterns = _patterns_of(solver, content, arrays, (n, d, targets.n_classes))
    for name, array in _arrays_of(solver, d, targets.n_classes, n).items():
        if array.is_sparse:
            _take(arrays, name, array.part)
        else:
            field = Field(array.part.shape, array.part.dtype, range=array.range)
            array.part[...] = arrays.take(name, field, {})


def _patterns_of(
    solver: SequenceSolver, content: dict[str, Any], arrays: NamedArrays, shape: tuple[int, ...]
) -> Any:
    """Return patterns with room for more than n, their features and which of them are in use.

    `shape` are the numbers n of slots, of features and of labels.
    """
    n, d, k = shape
    window, slots = solver.window, max(64, 2 * n)
    sizes = {"features": 1, "slots": max(1, n), "window": window}
    active = from_arrays(states.new(ActiveSet, sizes), content, arrays, sizes)
    if int(active.counts[0].n) != n:
        raise ValueError("there are not as many slots as the counts say")
    if isinstance(solver, KernelGreedy):
        rows: Any = arrays.take("rows", Field((n, d), np.float32), {})
    else:
        rows = _sparse_rows(arrays, n, d)
    if isinstance(solver, Greedy):
        new: Any = solver.grown(slots, 0)
    else:
        vectors = max(256, 2 * arrays.length_of("beta", 0))
        new = sentence_patterns.new_patterns(window, slots, vectors)
    # The store may have more room than was asked for.
    room = {"slots": new.cost.size, "window": window}
    store = stores.filled(new.store, rows)
    new = new._replace(store=store, active=states.grown_arrays(active, room))
    return _with_sentences(arrays, new, rows, k) if isinstance(solver, Exact) else new


def _sparse_rows(arrays: NamedArrays, n: int, d: int) -> SparseRows:
    """Return the features of n patterns."""
    lengths = arrays.take("pattern_lengths", Field((n,), np.int64, range=_LENGTH), {})
    total = int(lengths.sum())
    if "pattern_columns" in arrays:
        # As older files have them.
        columns = arrays.take("pattern_columns", Field((total,), np.int32), {})
    else:
        parts = arrays.take("pattern_column_bytes", Field((4, total), np.uint8), {})
        columns = np.ascontiguousarray(parts.T).view("<i4").ravel().astype(np.int32)
    Range(0, d - 1).check("the columns of patterns", columns, {})
    values = np.ones(total, np.float32)
    if "pattern_values" in arrays:
        values = arrays.take("pattern_values", Field((total,), np.float32), {})
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return SparseRows(start, columns, values, d)


def _with_sentences(arrays: NamedArrays, new: Any, rows: SparseRows, k: int) -> Any:
    """Return patterns that are sentences of k labels with their tokens and support vectors."""

    def take(name: str, n: int, dtype: Any, high: float) -> np.ndarray:
        return arrays.take(name, Field((n,), dtype, range=Range(0, high)), {})

    n, most = rows.start.size - 1, _LENGTH.high
    lengths = take("sentence_lengths", n, np.int64, most)
    tokens = take("token_lengths", int(lengths.sum()), np.int32, most)
    counts = take("vector_counts", n, np.int32, most)
    betas = arrays.take("beta", Field((int(counts.sum()),)), {})
    n_numbers = int((counts * lengths).sum())
    numbers = take("vector_labels", n_numbers, np.int32, k - 1)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    sums = np.concatenate([[0], np.cumsum(tokens, dtype=np.int64)])[ends]
    is_member = new.active.place[:n] >= 0
    if (np.diff(sums) != np.diff(rows.start)).any() or ((counts > 0) != is_member).any():
        raise ValueError("sentences, tokens and support vectors contradict each other")
    if (lengths[is_member] == 0).any():
        raise ValueError("a support pattern has no token")
    return sentence_patterns.filled(new, lengths, tokens, counts, betas, numbers)


_INFERENCES: tuple[dict[str, Any], ...] = ({"inference": "greedy"}, {"inference": "exact"})

SETTINGS: dict[str, Any] = {
    "variants": _INFERENCES,
    "more": _more,
    "read_more": _read_more,
    "older": {"max_classes": None},  # there was no limit
    "is_compressed": True,
}
"""How a learner is registered: arguments of `register_learner`."""

# One kernel stands for all: solvers are compiled once for them.
SETTINGS_WITH_KERNELS = SETTINGS | {
    "variants": (*_INFERENCES, {"kernel": kernels.RBF(gamma=1.0)}),
}
"""How one that takes kernels is registered."""
