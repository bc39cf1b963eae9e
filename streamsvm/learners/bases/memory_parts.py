"""What a state's arrays hold, in bytes: rows and coefficients, cached kernel rows, scratch."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.support import sparse_store
from streamsvm.support.sparse_store import SparseStore

_SCRATCH = ("block", "order", "lanes", "groups", "scores")
"""Fields of states that hold nothing between two examples."""


def parts_of(state: Any) -> dict[str, int]:
    """Return the bytes of the ``support_vectors``, of the row ``cache`` and of ``scratch``."""
    parts = {"support_vectors": 0, "cache": 0, "scratch": 0}
    _add(parts, "support_vectors", state)
    return parts


def _add(parts: dict[str, int], kind: str, part: Any) -> None:
    if isinstance(part, np.ndarray):
        parts[kind] += part.nbytes
    elif isinstance(part, tuple):
        scratch = sparse_store.SCRATCH if isinstance(part, SparseStore) else _SCRATCH
        for name, field in zip(part._fields, part, strict=True):  # type: ignore[attr-defined]
            inner = "cache" if name == "cache" else "scratch" if name in scratch else kind
            _add(parts, inner, field)
