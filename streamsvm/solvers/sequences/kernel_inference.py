"""Greedy inference with a kernel between tokens, behind the interface of `inference.Greedy`."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.solvers.sequences import kernel_tokens
from streamsvm.solvers.sequences.inference import Batch, Greedy, Keep, longest_of
from streamsvm.solvers.sequences.kernel_tokens import KernelTokens
from streamsvm.solvers.sequences.model import Model, Schedule
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.rows import SparseRows

MOST_FEATURES = 4096
"""The most features of tokens with a kernel: a pattern takes 4 bytes for each."""


class KernelGreedy(Greedy):
    """Labels are predicted from left to right; tokens are compared by a kernel."""

    def __init__(self, kernel: Any, cache_bytes: int) -> None:
        self.kernel, self.cache_bytes = kernel, cache_bytes

    def new_patterns(self, order: int, classes: int, window: int) -> KernelTokens:  # type: ignore[override]
        """Return no patterns, with room for some."""
        return kernel_tokens.new_patterns(order, classes, window, 1, self.cache_bytes)

    def with_classes(self, patterns: KernelTokens, classes: int) -> KernelTokens:  # type: ignore[override]
        """Return the patterns with room for so many classes."""
        if classes <= patterns.beta.shape[1]:
            return patterns
        return kernel_tokens.grown(patterns, 0, classes, 0, self.cache_bytes)

    def with_features(self, patterns: KernelTokens, d: int) -> KernelTokens:
        """Return the patterns with room for so many features, at most `MOST_FEATURES`."""
        if d <= patterns.store.panels.shape[1]:
            return patterns
        room = min(2 * d, MOST_FEATURES) if patterns.store.panels.shape[1] > 1 else d
        return kernel_tokens.grown(patterns, 0, 0, room, self.cache_bytes)

    def _bound(self, patterns: KernelTokens) -> Any:
        return bound(self.kernel, patterns.store)

    def learn(  # type: ignore[override]
        self, model: Model, patterns: KernelTokens, schedule: Schedule, batch: Batch,
        draws: np.ndarray, keep: Keep,
    ) -> None:  # fmt: skip
        """Learn a batch."""
        begin = int(batch.first[0])
        rows = _dense(batch.x, begin, int(batch.first[-1]), patterns)
        first, labels = batch.first - begin, batch.labels[begin:]
        done, n = 0, batch.first.size - 1
        while True:
            done = kernel_tokens.learn(
                model, patterns, schedule, self._bound(patterns), rows, first, labels,
                batch.known, batch.box, draws, done,
            )  # fmt: skip
            if done == n:
                return
            counts, slots = patterns.active.counts[0], patterns.label.size
            while slots - counts.n + counts.n_free < longest_of(first):
                slots *= 2
            patterns = kernel_tokens.grown(patterns, slots, 0, 0, self.cache_bytes)
            keep(patterns)

    def predict_with(
        self, model: Model, patterns: KernelTokens, order: int, x: SparseRows, first: np.ndarray,
        n: int, margins: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Return the labels of all tokens, int32; fill `margins` if they have rows."""
        rows = _dense(x, 0, x.start.size - 1, patterns)
        scores = kernel_tokens.emissions(patterns, self._bound(patterns), rows)
        labels = np.zeros(len(rows), np.int32)
        kernel_tokens.decode(scores, model.moves, order, first, n, labels)
        if len(margins):
            margins[:] = scores[:, :n]
        return labels

    @staticmethod
    def kept_gap(model: Model, patterns: Any, order: int, n: int) -> tuple[float, float]:
        """Return the gap over the support patterns, and the sum of their C_i."""
        return kernel_tokens.kept_gap(model, patterns, order, n)

    def improve(  # type: ignore[override]
        self, model: Model, patterns: Any, order: int, n: int, n_optimize: int, keep: Keep
    ) -> None:
        """Make steps on each support pattern."""
        kernel = self._bound(patterns)
        kernel_tokens.improve(model, patterns, kernel, order, n, n_optimize)


def _dense(x: SparseRows, begin: int, stop: int, patterns: KernelTokens) -> np.ndarray:
    """Return the rows begin .. stop-1 as float32 (rows, features of the store)."""
    rows = np.zeros((stop - begin, patterns.store.panels.shape[1]), np.float32)
    entries = slice(int(x.start[begin]), int(x.start[stop]))
    at = np.repeat(np.arange(stop - begin), np.diff(x.start[begin : stop + 1]))
    rows[at, x.columns[entries]] = x.values[entries]
    return rows
