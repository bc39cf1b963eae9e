"""The type of a view of some rows of a store, which several problems share.

Problems that have examples in common keep each row once, in one store. A problem reads the rows of
its own examples, its members, through a `MemberStore`, in which member s is row slot[s] of the
shared store. The operations on it are in `support.stores`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class MemberStore(NamedTuple):
    """The members of one problem."""

    entered: np.ndarray  # int64 (room,) number of the example, 0 if the member was removed
    weight: np.ndarray  # float64 (room,) its example weight
    slot: np.ndarray  # int64 (room,) its slot in `rows`
    rows: Any  # the shared store, a `DenseStore` or a `SparseStore`
    wanted: np.ndarray  # int64 (slots,) how many problems have the row as a member
    fresh: np.ndarray  # int64 (1,) slot of the example that is being learnt, -1 before it has one
    info: Any  # record array (1,) with n, the number of slots in use, and n_dead


class MemberKernel(NamedTuple):
    """A kernel for a `MemberStore`: the kernel for the store whose rows it shares."""

    kernel: Any
