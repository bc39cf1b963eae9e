"""What a learner of label sequences tells a monitor, and how much memory it holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.solvers.sequences.inference import Batch


def tell_of(learner: Any, part: Batch, guessed: list[Any], seconds: float) -> None:
    """Tell the observer of a learner of the tokens of a sentence that took so long to learn.

    `guessed` are the labels that were predicted before.
    """
    begin, stop = part.first
    codes = part.labels[begin:stop]
    n = len(codes)
    if n:
        x = part.x._replace(start=part.x.start[begin : stop + 1])
        labels = [learner.seen[code] for code in codes.tolist()]
        numbers = np.arange(learner.n_tokens - n, learner.n_tokens) + 1
        none = np.zeros(n)
        learner.observer.learnt(
            x, codes.astype(float), labels, guessed, none, none + 1.0, numbers, seconds
        )


def bytes_of(part: Any) -> int:
    """Return the bytes of all arrays in nested tuples."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    return sum(map(bytes_of, part)) if isinstance(part, tuple) else 0
