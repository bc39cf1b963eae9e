"""Greedy inference with a kernel between tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.structured.sequences import kernel_tokens
from streamsvm.structured.sequences.inference import Batch, Greedy, longest_of
from streamsvm.structured.sequences.kernel_tokens import KernelTokens
from streamsvm.structured.sequences.model import LANES, Schedule
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.rows import SparseRows

MOST_FEATURES = 4096
"""The most features of tokens with a kernel: a pattern takes 4 bytes for each."""


class KernelGreedy(Greedy):
    """Labels are predicted from left to right; tokens are compared by a kernel.

    Parameters
    ----------
    kernel
        A kernel of `streamsvm.kernels`.
    cache_bytes
        Bytes for rows of the kernel matrix.
    schedule, window, seed
        As of `SequenceSolver`.

    """

    gaps = kernel_tokens
    most_features = MOST_FEATURES

    def __init__(
        self,
        kernel: Any,
        cache_bytes: int,
        schedule: Schedule,
        window: int | None,
        seed: int | None,
    ) -> None:
        self.kernel, self.cache_bytes = kernel, cache_bytes
        super().__init__(schedule, False, window, seed)

    def new_patterns(self) -> KernelTokens:
        """Return no patterns, with room for some."""
        order = self.schedule.order
        return kernel_tokens.new_patterns(order, LANES, self.window, self.cache_bytes)

    def grow(self, features: int, classes: int, most_features: int) -> None:
        """Make room for so many features and classes; no prediction changes."""
        known = self.patterns.store.panels.shape[1]
        if features > known:
            room = min(2 * features, MOST_FEATURES) if known > 1 else features
            self.patterns = kernel_tokens.grown(self.patterns, 0, 0, room, self.cache_bytes)
        # The patterns are in the place of weights.
        super().grow(0, classes, most_features)

    def grown(self, slots: int, classes: int) -> KernelTokens:
        """Return the patterns with room for so many."""
        return kernel_tokens.grown(self.patterns, slots, classes, 0, self.cache_bytes)

    def bound(self) -> Any:
        """Return the kernel in the form that compiled functions take."""
        return bound(self.kernel, self.patterns.store)

    def learn(self, batch: Batch) -> None:
        """Learn a batch."""
        begin = int(batch.first[0])
        rows = self.dense(batch.x, begin, int(batch.first[-1]))
        first, labels = batch.first - begin, batch.labels[begin:]

        def run(done: int) -> Any:
            own = self.model, self.patterns, self.schedule, self.bound()
            return kernel_tokens.learn(
                *own, rows, first, labels, batch.known, batch.cost, self.draws, done
            )

        self.run(run, first.size - 1, longest_of(first))

    def predict(self, x: SparseRows, first: np.ndarray, n: int, margins: np.ndarray) -> np.ndarray:
        """Return the labels of all tokens, int32; fill `margins` if they have rows."""
        rows = self.dense(x, 0, x.start.size - 1)
        scores = kernel_tokens.emissions(self.patterns, self.bound(), rows)
        labels = np.zeros(len(rows), np.int32)
        kernel_tokens.decode(scores, self.model.moves, self.schedule.order, first, n, labels)
        if len(margins):
            margins[:] = scores[:, :n]
        return labels

    def improve(self, n: int) -> None:
        """Make steps on each support pattern; there are n labels."""
        order, n_optimize = self.schedule.order, self.schedule.n_optimize
        kernel_tokens.improve(self.model, self.patterns, self.bound(), order, n, n_optimize)

    def square_norm(self, d: int, n: int) -> float:
        """Return |w|^2."""
        return float(self.model.info[0].square_norm)

    def dense(self, x: SparseRows, begin: int, stop: int) -> np.ndarray:
        """Return the rows begin .. stop-1 as float32 (rows, features of the store)."""
        rows = np.zeros((stop - begin, self.patterns.store.panels.shape[1]), np.float32)
        entries = slice(int(x.start[begin]), int(x.start[stop]))
        at = np.repeat(np.arange(stop - begin), np.diff(x.start[begin : stop + 1]))
        rows[at, x.columns[entries]] = x.values[entries]
        return rows
