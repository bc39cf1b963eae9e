"""Model files of linear learners: what they hold beside the state, the rate and its search."""

from __future__ import annotations

from typing import Any

from streamsvm.learners.bases.linear.rate_search import RateSearchRows
from streamsvm.model_files.codec import Content
from streamsvm.model_files.json_values import checked
from streamsvm.support.declaration import NamedArrays, Range, as_float

_T0 = Range(1e-300, 1e300)


def _more(model: Any) -> Content:
    rows = model.solver.first_rows
    if rows is not None and rows.n_rows != model.n_examples:
        # Ctrl-C came between learning an example and keeping it: no reader would take the rows.
        rows = None
    content = {"t0": model.solver.schedule.t0, "has_first": rows is not None}
    return content, {} if rows is None else rows.as_arrays(len(model.schema))


def _read_more(model: Any, content: dict[str, Any], arrays: NamedArrays) -> None:
    t0 = as_float("t0", content.get("t0"))
    _T0.check("t0", t0, {})
    solver = model.solver
    solver.schedule, solver.first_rows = solver.schedule._replace(t0=t0), None
    if checked(content.get("has_first"), bool, "has_first"):
        sizes = {"features": len(model.schema), "classes": model.targets.n_classes}
        rows = RateSearchRows.from_arrays(arrays, model.n_examples, sizes)
        if rows.is_sparse and not model.is_sparse:
            raise ValueError("the first rows are sparse, but is_sparse is false")
        solver.first_rows = rows


LINEAR_FILE: dict[str, Any] = {
    "more": _more,
    "read_more": _read_more,
    "older": {"max_classes": None},  # there was no limit
}
"""See `register_learner`."""
