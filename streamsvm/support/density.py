"""Decides whether a learner stores dense rows or sparse ones, which list nonzero features only."""

from typing import Any

import numpy as np

from streamsvm.errors import ParameterError

DENSE_BYTES = 64_000_000
"""The most memory, in bytes, that dense stored rows may take where sparse ones would be smaller."""

FEWEST_FEATURES, LARGEST_SHARE = 128, 1 / 16
"""Rows of so many features or more are faster as sparse ones, if at most this share is not 0."""

_LARGEST_SHARE_OF_MANY = 1 / 4


def check_sparse(sparse: Any, hashing: Any) -> bool:
    """Return whether a learner begins with sparse rows: they were asked for, or names are hashed.

    `sparse` is True, False, or None: decide by the data; `hashing` is None, or a number of columns.
    ParameterError: `sparse` is something else, or False although names are hashed.
    """
    if not (sparse is None or isinstance(sparse, bool)):
        raise ParameterError(f"sparse={sparse!r}: use True, False or None (as the data turn out)")
    if hashing is not None and sparse is False:
        raise ParameterError(f"hashing={hashing!r} wants sparse rows: leave sparse=False out")
    return bool(sparse) or hashing is not None


def are_sparse(rows: np.ndarray) -> bool:
    """Tell whether rows, float32 (n, d), are so sparse that sparse rows are faster.

    Features that are 0 in all rows are not counted, so that the answer does not depend on how many
    other features the schema has.
    """
    if rows.shape[1] < FEWEST_FEATURES:
        return False
    used = int(np.count_nonzero(rows.any(axis=0))) if len(rows) else 0
    few = np.count_nonzero(rows) <= LARGEST_SHARE * len(rows) * used
    return bool(used >= FEWEST_FEATURES and few)


def may_become_sparse(rows: np.ndarray) -> bool:
    """Tell by a few first rows, float32 (n, d), whether `are_sparse` may be true of later ones."""
    is_wide = rows.shape[1] >= FEWEST_FEATURES // 4
    return is_wide and bool(np.count_nonzero(rows) <= _LARGEST_SHARE_OF_MANY * rows.size)


def may_be_too_many(capacity: int, n_features: int) -> bool:
    """Tell whether `capacity` dense rows take more than `DENSE_BYTES`."""
    return 4 * capacity * n_features > DENSE_BYTES


def are_mostly_zero(rows: np.ndarray, n_features: int) -> bool:
    """Tell whether rows of `n_features` features would take less memory as sparse rows."""
    return bool(np.count_nonzero(rows) <= _LARGEST_SHARE_OF_MANY * rows.shape[0] * n_features)
