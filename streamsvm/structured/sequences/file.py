"""What model files hold of a learner of label sequences, and the checks of what they hold.

All features are written, also those without a weight: sums are taken in the order in which features
came first, so that a learner from a file goes on exactly as the one that was saved. The sentences
of exact inference are written as lists, since a chain of numbers from a file could go in circles.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm.model_files.codec import labels_in
from streamsvm.model_files.json_values import Content
from streamsvm.structured import vocabulary
from streamsvm.structured.sequences import sentence_patterns
from streamsvm.structured.sequences.inference import Exact, Greedy, KernelGreedy, SequenceSolver
from streamsvm.structured.sequences.label_pool import LabelPool
from streamsvm.structured.sequences.learner import SequenceLearner
from streamsvm.structured.sequences.model import LARANK
from streamsvm.structured.sequences.sentence_patterns import SentencePatterns
from streamsvm.support import sparse_store, states, stores
from streamsvm.support.active_set import ActiveSet
from streamsvm.support.declaration import DRAWS, Field, NamedArrays, Range, rows_as_arrays
from streamsvm.support.rows import SparseRows
from streamsvm.support.state_arrays import as_arrays, from_arrays

_LENGTH = Range(0, 2**31)


def _more(learner: SequenceLearner) -> Content:
    """Return the content of a file beside the parameters."""
    solver, d, k = learner.solver, learner.n_features, learner.targets.n_classes
    records, model = as_arrays(solver.model, _sizes_of_model(solver, d, k))
    keys, n_ignored = vocabulary.as_file(learner.vocabulary, d)
    # The parameters say what labels cost; patterns have C_i under this name.
    arrays = model | {"keys": keys, "draws": solver.draws}
    del arrays["cost"]
    if solver.schedule.method == LARANK:
        exact = isinstance(solver, Exact)
        more, of_patterns = (
            _sentences_as_arrays(solver.patterns, d)
            if exact
            else as_arrays(solver.patterns, {"features": d, "classes": k})
        )
        records, arrays = records | more, arrays | of_patterns
    return records | {"n_ignored": n_ignored}, arrays


def _sizes_of_model(solver: SequenceSolver, d: int, k: int) -> dict[str, int]:
    """Return how much of the arrays of a model d features and k labels use."""
    d = 0 if isinstance(solver, KernelGreedy) else d
    late = {"late_features": d} if solver.is_averaged else {}
    return {"features": d, "classes": k, "pasts": k + 1, **late}


def _sentences_as_arrays(patterns: SentencePatterns, d: int) -> Content:
    """Return sentences: the features of their tokens, and their support vectors."""
    records, arrays = as_arrays(patterns.active, {"features": 1})
    n, none = int(patterns.active.counts[0].n), np.zeros(0, np.int32)
    tokens, labels, betas, counts = [none], [none], [], np.zeros(n, np.int32)
    for slot in range(n):
        tokens.append(_list_of(patterns.lengths, slot))
        v = patterns.head[slot]
        while v != sentence_patterns.NONE:
            counts[slot] += 1
            betas.append(patterns.beta[v])
            labels.append(_list_of(patterns.labels, v))
            v = patterns.next[v]
    rows = sparse_store.rows_of(patterns.store, n, d)
    start = np.concatenate([[0], np.cumsum(np.concatenate(tokens), dtype=np.int64)])
    return records, arrays | rows_as_arrays(rows._replace(start=start)) | {
        "entered": patterns.store.entered[:n],
        "cost": patterns.cost[:n],
        "sentence_lengths": patterns.lengths.length[:n],
        "vector_counts": counts,
        "beta": np.array(betas, np.float64),
        "vector_labels": np.concatenate(labels),
    }  # fmt: skip


def _list_of(lists: LabelPool, i: int) -> np.ndarray:
    return lists.numbers[lists.start[i] : lists.start[i] + lists.length[i]]


def _read_more(learner: SequenceLearner, content: dict[str, Any], arrays: NamedArrays) -> None:
    """Set on a new learner what `_more` returned."""
    solver, targets = learner.solver, learner.targets
    targets = targets.having(labels_in(content, targets.labels.most))
    most, n_ignored = learner.most_features, content.get("n_ignored")
    learner.vocabulary = vocabulary.from_file("keys", arrays, most, n_ignored)
    d, k = vocabulary.size(learner.vocabulary), targets.n_classes
    learner.grow(max(1, d), targets.labels.seen)
    learner.targets, learner.n_features = targets, d
    sizes = _sizes_of_model(solver, d, k)
    solver.model = from_arrays(solver.model, content, arrays, sizes, given=("cost",))
    solver.draws[:] = arrays.take("draws", DRAWS, {})
    if solver.schedule.method == LARANK and isinstance(solver, Exact):
        solver.patterns = _sentences_from(arrays, content, solver.window, d, k)
    elif solver.schedule.method == LARANK and isinstance(solver, Greedy):
        solver.patterns = _tokens_from(arrays, content, solver, d, k)


def _tokens_from(
    arrays: NamedArrays, content: dict[str, Any], solver: Greedy, d: int, k: int
) -> Any:
    """Return patterns that are tokens."""
    sizes = {"features": d, "classes": k}
    patterns = from_arrays(solver.patterns, content, arrays, sizes, solver.cache_bytes)
    if not isinstance(solver, KernelGreedy):
        # Without scratch for dense rows: their products are not needed.
        old = patterns.store
        rows = sparse_store.rows_of(old, int(patterns.active.counts[0].n), d)
        store = stores.filled(sparse_store.new_store(old.start.size, 1), rows)
        patterns = patterns._replace(store=store._replace(entered=old.entered, weight=old.weight))
    return patterns


def _sentences_from(
    arrays: NamedArrays, content: dict[str, Any], window: int, d: int, k: int
) -> SentencePatterns:
    """Return patterns of what `_sentences_as_arrays` returned, with room for more."""

    def take(name: str, n: int, dtype: Any = np.float64, high: float = np.inf) -> np.ndarray:
        return arrays.take(name, Field((n,), dtype, range=Range(0, high)), {})

    n = arrays.length_of("place", 0)
    lengths = take("sentence_lengths", n, np.int64, _LENGTH.high)
    tokens = arrays.take_rows(int(lengths.sum()), d)
    counts = take("vector_counts", n, np.int32, _LENGTH.high)
    betas = arrays.take("beta", Field((int(counts.sum()),)), {})
    labels = take("vector_labels", int((counts * lengths).sum()), np.int32, k - 1)
    sizes = {"features": 1, "slots": max(1, n), "window": window}
    active = from_arrays(states.new(ActiveSet, sizes), content, arrays, sizes)
    is_member = active.place[:n] >= 0
    if int(active.counts[0].n) != n or ((counts > 0) != is_member).any():
        raise ValueError("sentences, slots and support vectors contradict each other")
    if (lengths[is_member] == 0).any() or not isinstance(tokens, SparseRows):
        raise ValueError("a support pattern has no token")
    new = sentence_patterns.new_patterns(window, max(64, 2 * n), max(256, 2 * betas.size))
    ends = np.concatenate([[0], np.cumsum(lengths)])
    store = stores.filled(new.store, tokens._replace(start=tokens.start[ends]))
    store.entered[:n], new.cost[:n] = take("entered", n, np.int64), take("cost", n)
    # The store may have more room than was asked for.
    room = {"slots": new.cost.size, "window": window}
    new = new._replace(store=store, active=states.grown_arrays(active, room))
    sizes_of_tokens = np.diff(tokens.start).astype(np.int32)
    return sentence_patterns.filled(new, lengths, sizes_of_tokens, counts, betas, labels)


_INFERENCES: tuple[dict[str, Any], ...] = ({"inference": "greedy"}, {"inference": "exact"})

SETTINGS: dict[str, Any] = {
    "variants": _INFERENCES,
    "more": _more,
    "read_more": _read_more,
    "is_compressed": True,
}
"""How a learner is registered: arguments of `register_learner`."""

# One kernel stands for all: solvers are compiled once for them.
SETTINGS_WITH_KERNELS = SETTINGS | {
    "variants": (*_INFERENCES, {"kernel": kernels.RBF(gamma=1.0)}),
}
"""How one that takes kernels is registered."""
