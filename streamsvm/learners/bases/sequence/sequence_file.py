"""What model files hold of a learner of label sequences, and the checks of what they hold.

All features are written, also those without a weight: sums are taken in the order in which features
came first, so that a learner from a file goes on exactly as the one that was saved. Of weights and
coefficients the nonzero ones are written, with the lengths of their rows. Support vectors are
written as lists by sentence, since a chain of numbers from a file could go in circles.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.learners.bases.sequence.sequence_learner import SequenceLearner
from streamsvm.model_files.codec import Content
from streamsvm.model_files.json_values import as_json, distinct
from streamsvm.solvers.sequences import kernel_tokens, sentence_patterns, token_patterns
from streamsvm.solvers.sequences.inference import Greedy
from streamsvm.solvers.sequences.kernel_inference import KernelGreedy
from streamsvm.solvers.sequences.model import INFO
from streamsvm.structured import vocabulary
from streamsvm.support import dense_store, sparse_store, states, stores
from streamsvm.support.active_set import ActiveSet
from streamsvm.support.declaration import COUNT, Field, NamedArrays, Range, Record, Sizes
from streamsvm.support.rows import SparseRows
from streamsvm.support.state_arrays import as_arrays, from_arrays

_INFO = Record(INFO)
_DRAWS = Field((1,), np.uint64, range=Range(1))


# Matrices by their nonzero entries


def _small(n: int) -> Any:
    """Return a dtype of whole numbers below n."""
    return np.uint8 if n <= 256 else np.int32


def _put_matrix(arrays: dict[str, np.ndarray], name: str, matrix: np.ndarray) -> None:
    rows, columns = np.nonzero(matrix)
    arrays[f"{name}_lengths"] = np.bincount(rows, minlength=len(matrix)).astype(np.int32)
    arrays[f"{name}_columns"] = columns.astype(_small(matrix.shape[1]))
    arrays[f"{name}_values"] = matrix[rows, columns]


def _take_matrix(arrays: NamedArrays, name: str, n: int, columns: int, dtype: Any) -> np.ndarray:
    lengths = arrays.take(f"{name}_lengths", Field((n,), np.int32, range=Range(0, columns)), {})
    total = int(lengths.sum())
    field = Field((total,), _small(columns), range=Range(0, columns - 1))
    at = arrays.take(f"{name}_columns", field, {})
    values = arrays.take(f"{name}_values", Field((total,), dtype), {})
    matrix = np.zeros((n, columns), dtype)
    matrix[np.repeat(np.arange(n), lengths), at] = values
    return matrix


def _bytes_of(numbers: np.ndarray) -> np.ndarray:
    """Return int32 numbers as uint8 (4, n), lowest bytes first: that is compressed better."""
    return numbers.astype("<i4").view(np.uint8).reshape(-1, 4).T


def _take_bytes(arrays: NamedArrays, name: str, n: int) -> np.ndarray:
    parts = arrays.take(name, Field((4, n), np.uint8, range=Range(0)), {})
    return np.ascontiguousarray(parts.T).view("<i4").ravel().astype(np.int32)


# Writing


def _more(part: SequenceLearner) -> Content:
    """Return the content of a file beside the parameters."""
    model, n = part._model, len(part._seen)
    content: dict[str, Any] = {
        "labels": [as_json(label, "the label") for label in part._seen],
        "info": _INFO.as_json(model.info),
        "n_ignored": int(part._vocabulary.counts[1]),
    }
    arrays = {"keys": vocabulary.keys_of(part._vocabulary, part.n_features), "draws": part._draws}
    arrays["moves"] = model.moves[:, : n + 1, :n]
    if isinstance(part._solver, KernelGreedy):
        # There are no weights of features.
        return content, arrays
    n_features = part.n_features
    _put_matrix(arrays, "weights", model.weights[:n_features, :n])
    if part._averaged:
        _put_matrix(arrays, "late", model.late[:n_features, :n])
        arrays["late_moves"] = model.late_moves[:, : n + 1, :n]
    return content, arrays


def _rows_of(part: SequenceLearner) -> SparseRows:
    """Return the rows of all slots."""
    n = int(part._patterns.active.counts[0].n)
    return sparse_store.rows_of(part._patterns.store, n, 0)


def _more_with_patterns(part: SequenceLearner) -> Content:
    """Return the same with the support patterns."""
    if isinstance(part._solver, KernelGreedy):
        return _more_with_kernel(part)
    content, arrays = _more(part)
    arrays["look_draws"] = part._model.look_draws
    patterns, rows = part._patterns, _rows_of(part)
    n = rows.start.size - 1
    record, active = as_arrays(patterns.active, {"features": 1})
    arrays |= {
        "pattern_lengths": np.diff(rows.start),
        "pattern_column_bytes": _bytes_of(rows.columns),
        "entered": patterns.store.entered[:n],
        "box": patterns.box[:n],
    }
    if not (rows.values == 1.0).all():
        arrays["pattern_values"] = rows.values
    further = _token_arrays if part._solver is Greedy else _sentence_arrays
    return content | record, arrays | active | further(part, n)


def _token_arrays(part: SequenceLearner, n: int) -> dict[str, np.ndarray]:
    patterns = part._patterns
    arrays: dict[str, np.ndarray] = {}
    _put_matrix(arrays, "beta", patterns.beta[:n, : len(part._seen)])
    return arrays | {"pattern_labels": patterns.label[:n], "past": patterns.past[:n]}


def _sentence_arrays(part: SequenceLearner, n: int) -> dict[str, np.ndarray]:
    patterns = part._patterns
    tokens, betas, labels, counts = [], [], [], np.zeros(n, np.int32)
    for slot in range(n):
        start, length = patterns.lengths.start[slot], patterns.lengths.length[slot]
        tokens.append(patterns.lengths.numbers[start : start + length])
        v = patterns.head[slot]
        while v != sentence_patterns.NONE:
            counts[slot] += 1
            betas.append(patterns.beta[v])
            start = patterns.labels.start[v]
            labels.append(patterns.labels.numbers[start : start + patterns.labels.length[v]])
            v = patterns.next[v]
    none = np.zeros(0, np.int32)
    return {
        "sentence_lengths": patterns.lengths.length[:n].copy(),
        "token_lengths": np.concatenate([none, *tokens]),
        "vector_counts": counts,
        "beta": np.array(betas, np.float64),
        "vector_labels": np.concatenate([none, *labels]),
    }


# Reading


def _read_more(part: SequenceLearner, content: dict[str, Any], arrays: NamedArrays) -> None:
    """Set on a new learner what `_more` returned."""
    seen = distinct(content.get("labels"), "labels")
    if None in seen:
        raise ValueError("a label is null")
    n_features, n = arrays.length_of("keys", 0), len(seen)
    if n_features > part._most_features:
        raise ValueError("there are more features than max_features")
    keys = arrays.take("keys", Field((n_features,), np.uint64, range=Range(0)), {})
    part._vocabulary = vocabulary.with_keys(keys)
    if vocabulary.size(part._vocabulary) != n_features:
        raise ValueError("keys: two are equal")
    part._grow(max(1, n_features), seen)
    part._seen, part._n_features = seen, n_features
    ignored = {"n_ignored": content.get("n_ignored")}
    record = Record(np.dtype([("n_ignored", np.int64)]))
    part._vocabulary.counts[1] = record.checked("", ignored, {})["n_ignored"]
    for name, value in _INFO.checked("info", content.get("info"), {}).items():
        part._model.info[0][name] = value
    part._draws = arrays.take("draws", _DRAWS, {})
    names = ("weights", "late") if part._averaged else ("weights",)
    orders = len(part._model.moves)
    for name in names:
        if not isinstance(part._solver, KernelGreedy):
            matrix = _take_matrix(arrays, name, n_features, n, np.float32)
            getattr(part._model, name)[:n_features, :n] = matrix
        moves = "moves" if name == "weights" else "late_moves"
        field = Field((orders, n + 1, n), np.float32)
        getattr(part._model, moves)[:, : n + 1, :n] = arrays.take(moves, field, {})


def _read_with_patterns(
    part: SequenceLearner, content: dict[str, Any], arrays: NamedArrays
) -> None:
    """Set the same on a learner with support patterns."""
    _read_more(part, content, arrays)
    part._model.look_draws[:] = arrays.take("look_draws", _DRAWS, {})
    if isinstance(part._solver, KernelGreedy):
        _read_with_kernel(part, content, arrays)
        return
    n = arrays.length_of("place", 0)
    sizes = {"features": 1, "slots": max(1, n), "window": part._window()}
    empty = states.new(ActiveSet, sizes)
    active = from_arrays(empty, content, arrays, sizes)
    if int(active.counts[0].n) != n:
        raise ValueError("there are not as many slots as the counts say")
    rows = _taken_rows(part, arrays, n)
    entered = arrays.take("entered", Field((n,), np.int64, range=COUNT), {})
    box = arrays.take("box", Field((n,), range=Range(0)), {})
    fill = _fill_tokens if part._solver is Greedy else _fill_sentences
    part._patterns = fill(part, arrays, active, rows)
    part._patterns.store.entered[:n], part._patterns.box[:n] = entered, box


def _taken_rows(part: SequenceLearner, arrays: NamedArrays, n: int) -> SparseRows:
    lengths = arrays.take("pattern_lengths", Field((n,), np.int64, range=Range(0, 2**31)), {})
    total, d = int(lengths.sum()), part.n_features
    if "pattern_columns" in arrays:
        # As older files have them.
        columns = arrays.take("pattern_columns", Field((total,), np.int32), {})
    else:
        columns = _take_bytes(arrays, "pattern_column_bytes", total)
    Range(0, d - 1).check("the columns of patterns", columns, {})
    values = np.ones(total, np.float32)
    if "pattern_values" in arrays:
        values = arrays.take("pattern_values", Field((total,), np.float32), {})
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return SparseRows(start, columns, values, d)


def _active_with_room(part: SequenceLearner, active: ActiveSet, slots: int) -> Any:
    sizes = {"slots": slots, "window": part._window()}
    return states.grown_arrays(active, sizes)


def _fill_tokens(part: SequenceLearner, arrays: NamedArrays, active: Any, rows: SparseRows) -> Any:
    n, n_labels = rows.start.size - 1, len(part._seen)
    patterns = token_patterns.new_patterns(
        part._order, part._model.weights.shape[1], part._window(), max(64, 2 * n)
    )
    patterns = patterns._replace(
        store=sparse_store.filled(patterns.store, rows),
        active=_active_with_room(part, active, patterns.label.size),
    )
    labels = Field((n,), np.int32, range=Range(0, max(0, n_labels - 1)))
    patterns.label[:n] = arrays.take("pattern_labels", labels, {})
    past = Field((n, part._order), np.int32, range=Range(0, n_labels))
    patterns.past[:n] = arrays.take("past", past, {})
    patterns.beta[:n, :n_labels] = _take_matrix(arrays, "beta", n, n_labels, np.float64)
    return patterns


def _fill_sentences(
    part: SequenceLearner, arrays: NamedArrays, active: Any, rows: SparseRows
) -> Any:
    n, n_labels = rows.start.size - 1, len(part._seen)
    sizes: Sizes = {}
    lengths = arrays.take("sentence_lengths", Field((n,), np.int64, range=Range(0, 2**31)), sizes)
    n_tokens = int(lengths.sum())
    tokens = arrays.take("token_lengths", Field((n_tokens,), np.int32, range=Range(0)), sizes)
    counts = arrays.take("vector_counts", Field((n,), np.int32, range=Range(0)), sizes)
    betas = arrays.take("beta", Field((int(counts.sum()),)), sizes)
    n_numbers = int((counts * lengths).sum())
    numbers = arrays.take(
        "vector_labels", Field((n_numbers,), np.int32, range=Range(0, n_labels - 1)), sizes
    )
    ends = np.concatenate([[0], np.cumsum(lengths)])
    sums = np.concatenate([[0], np.cumsum(tokens, dtype=np.int64)])[ends]
    is_member = active.place[:n] >= 0
    if (np.diff(sums) != np.diff(rows.start)).any() or ((counts > 0) != is_member).any():
        raise ValueError("sentences, tokens and support vectors contradict each other")
    if (lengths[is_member] == 0).any():
        raise ValueError("a support pattern has no token")
    new = sentence_patterns.new_patterns(part._window(), max(64, 2 * n), max(256, 2 * betas.size))
    new = new._replace(
        store=sparse_store.filled(new.store, rows),
        active=_active_with_room(part, active, new.box.size),
    )
    return sentence_patterns.filled(new, lengths, tokens, counts, betas, numbers)


# With a kernel


def _kernel_fields(n: int, n_labels: int, order: int) -> dict[str, Field]:
    """Return the arrays of n slots that files hold of `KernelTokens`."""
    return {
        "label": Field((n,), np.int32, range=Range(0, max(0, n_labels - 1))),
        "past": Field((n, order), np.int32, range=Range(0, n_labels)),
        "box": Field((n,), range=Range(0)),
        "diagonal": Field((n,), range=Range(0)),
    }


def _more_with_kernel(part: SequenceLearner) -> Content:
    content, arrays = _more(part)
    patterns, n_labels = part._patterns, len(part._seen)
    n = int(patterns.active.counts[0].n)
    record, active = as_arrays(patterns.active, {"features": 1})
    arrays |= {
        "look_draws": part._model.look_draws,
        "rows": dense_store.rows_of(patterns.store, n, part.n_features),
        "entered": patterns.store.entered[:n],
        "f": patterns.f[:n_labels, :n],
    }
    for name in _kernel_fields(n, n_labels, part._order):
        arrays[name] = getattr(patterns, name)[:n]
    _put_matrix(arrays, "beta", patterns.beta[:n, :n_labels])
    return content | record, arrays | active


def _read_with_kernel(part: SequenceLearner, content: dict[str, Any], arrays: NamedArrays) -> None:
    n, n_labels, solver = arrays.length_of("place", 0), len(part._seen), part._solver
    sizes = {"features": 1, "slots": max(1, n), "window": part._window()}
    active = from_arrays(states.new(ActiveSet, sizes), content, arrays, sizes)
    if int(active.counts[0].n) != n:
        raise ValueError("there are not as many slots as the counts say")
    patterns = kernel_tokens.grown(
        part._patterns,
        max(64, 2 * n),
        0,
        0,
        solver.cache_bytes,  # type: ignore[union-attr]
    )
    rows = arrays.take("rows", Field((n, part.n_features), np.float32), {})
    stores.filled(patterns.store, rows)
    slots = patterns.label.size
    patterns = patterns._replace(active=_active_with_room(part, active, slots))
    patterns.store.entered[:n] = arrays.take("entered", Field((n,), np.int64, range=COUNT), {})
    patterns.f[:n_labels, :n] = arrays.take("f", Field((n_labels, n)), {})
    for name, field in _kernel_fields(n, n_labels, part._order).items():
        getattr(patterns, name)[:n] = arrays.take(name, field, {})
    patterns.beta[:n, :n_labels] = _take_matrix(arrays, "beta", n, n_labels, np.float64)
    part._patterns = patterns
    part._n_known = part.n_features  # type: ignore[attr-defined]


_OLDER = {"max_classes": None}  # there was no limit

LINEAR_FILE: dict[str, Any] = {
    "more": _more,
    "read_more": _read_more,
    "older": _OLDER,
    "is_compressed": True,
}
"""How files hold a learner without support patterns: the arguments of `codec.register`."""

LARANK_FILE: dict[str, Any] = {
    "more": _more_with_patterns,
    "read_more": _read_with_patterns,
    "older": _OLDER,
    "is_compressed": True,
}
"""How files hold one with support patterns."""
