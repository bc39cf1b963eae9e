"""What model files hold of linear learners beside what all learners have."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.learners.bases.rate_search import LAST, RateSearchRows
from streamsvm.model_files.codec import Content
from streamsvm.model_files.json_values import checked
from streamsvm.solvers.linear.state import FIELDS, LinearState
from streamsvm.support.declaration import (
    NOT_NEGATIVE,
    Field,
    NamedArrays,
    Range,
    as_float,
    rows_as_arrays,
)
from streamsvm.support.rows import SparseRows


def more(model: Any) -> Content:
    """Return the weights and the first rows of a linear learner, whose lock is held."""
    content: dict[str, Any] = {"t0": model._schedule.t0, "has_first": model._first is not None}
    arrays: dict[str, np.ndarray] = {}
    d = len(model._schema)
    if model._state is not None:
        arrays |= {"weights": model._state.weights[:, :, : max(1, d)], "info": model._state.info}
    if model._first is not None:
        rows, y, w = model._first.all(d)
        arrays |= rows_as_arrays(rows) | {"first_y": y, "first_weight": w}
    return content, arrays


def read_more(model: Any, content: dict[str, Any], arrays: NamedArrays) -> None:
    """Take that from a file.

    Raises
    ------
    ValueError
        The parts do not fit together.

    """
    t0 = as_float("t0", content.get("t0"))
    Range(1e-300, 1e300).check("t0", t0, {})
    model._schedule = model._schedule._replace(t0=t0)
    d = len(model._schema)
    if "weights" in arrays:
        parts = 1 if model._initial_second_part() is None else 2
        sizes = {"outputs": model._n_outputs(), "parts": parts, "features": max(1, d)}
        model._state = LinearState(*(arrays.take(k, f, sizes) for k, f in FIELDS.items()))
    elif model._n_examples:
        raise ValueError("there are examples, but no weights")
    model._first = None
    if checked(content.get("has_first"), bool, "has_first"):
        model._first = _read_first_rows(model, arrays, d)


def _read_first_rows(model: Any, arrays: NamedArrays, d: int) -> RateSearchRows:
    """Return the rows that the rate is chosen by."""
    n = arrays.length_of("first_y", 0)
    if n > LAST or n != model._n_examples:
        raise ValueError("the first rows are not all examples so far, or more than are ever kept")
    signs = Range(-1.0, 1.0) if model._labels.is_binary else Range(0, -1, "classes")
    y = arrays.take("first_y", Field((n,), range=signs), {"classes": model._n_outputs()})
    weight = arrays.take("first_weight", Field((n,), range=NOT_NEGATIVE), {})
    rows = arrays.take_rows(n, d)
    if isinstance(rows, SparseRows) and not model._sparse:
        raise ValueError("the first rows are sparse, but is_sparse is false")
    found = RateSearchRows()
    if n:
        found.add(rows, y, weight)
    return found


LINEAR_FILE: dict[str, Any] = {
    "prepare": lambda model: model._search_rate_if_due(),
    "more": more,
    "read_more": read_more,
}
"""How model files hold linear learners: see `register_learner`."""
