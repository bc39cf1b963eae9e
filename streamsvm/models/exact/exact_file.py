"""The examples and the solution of an exact SVM in model files."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike

from streamsvm._parameter_checks import LARGEST_FACTOR, LARGEST_ID
from streamsvm.model_files.json_values import (
    LARGEST_COUNT,
    Content,
    Json,
    checked,
    kernel_as_json,
    kernel_from_json,
)
from streamsvm.models.exact.exact_rows import ExactRows
from streamsvm.solvers.incremental.exact import ExactProblem
from streamsvm.solvers.incremental.kept import FACTS, OF_SLOTS
from streamsvm.solvers.incremental.state import AT_HIGH, AT_LOW, MARGIN, PENDING
from streamsvm.support.declaration import COUNT, Field, NamedArrays, Range, as_int

_WHOLE = ("kind", "place")
_RANGES = {
    "kind": Range(0, PENDING),
    "place": Range(-1),
    "diagonal": Range(0),
    "number": COUNT,
    "arrived": COUNT,
    "weight": Range(0, LARGEST_FACTOR),
}
_COUNTED = ("n_added", "n_changes")
_OF_INFO = ("n_steps", "n_null", "b", "drift", "near", "is_inexact")
_MOST_ERROR = 1e-4
"""With larger errors of gradients, sum or conditions of optimality, for costs of 1, a file is
damaged."""


def solution_as_file(rows: ExactRows, d: int) -> Content:
    """Return the solution, of d features, as JSON values and arrays; it is settled first."""
    problem = rows.problem
    problem.settle()
    problem.widen(d)
    state, of_state, n = problem.state, problem.state._asdict(), problem.n
    m = int(state.info[0].m)
    arrays = {f"exact_{name}": of_state[name][:n] for name in OF_SLOTS}
    arrays |= {f"exact_{name}": problem.facts[name][:n].copy() for name in FACTS.names or ()}
    arrays["exact_members"] = state.members[:m]
    arrays["exact_inverse"] = np.ascontiguousarray(state.inverse[: m + 1, : m + 1])
    arrays["exact_rows"] = problem.rows(d)
    arrays["exact_moments"] = rows.moments
    content: Json = {"n_added": problem.n_added, "n_changes": problem.n_changes}
    content["highest"] = problem.highest
    content |= {name: state.info[0][name].item() for name in _OF_INFO}
    if not np.isfinite(content["drift"]):
        # JSON has no infinity: Q^-1 is computed anew before it is used.
        content["drift"] = None
    return {"exact": content | {"kernel": kernel_as_json(problem.kernel)}}, arrays


def read_solution(rows: ExactRows, d: int, content: Json, arrays: NamedArrays) -> ExactProblem:
    """Return the problem that `solution_as_file` was given; ValueError if it is inconsistent."""
    found = checked(content.get("exact"), dict, "exact")
    n = arrays.length_of("exact_beta", 0)
    kernel = kernel_from_json(checked(found.get("kernel"), dict, "the kernel"))
    problem: ExactProblem = rows.problem.emptied(kernel)
    for name in _COUNTED:
        setattr(problem, name, as_int(name, found.get(name), 0, LARGEST_COUNT))
    problem.highest = as_int("highest", found.get("highest"), 0, LARGEST_ID)
    m = arrays.length_of("exact_members", 0)
    if m > n:
        raise ValueError("more examples are on the margin than there are")
    problem.make_room(n, m, d)
    state, of_state = problem.state, problem.state._asdict()

    def take(name: str, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> np.ndarray:
        declared = Field(shape, dtype, range=_RANGES.get(name, Range()))
        return arrays.take(f"exact_{name}", declared, {})

    for name in OF_SLOTS:
        of_state[name][:n] = take(name, (n,), np.int64 if name in _WHOLE else np.float64)
    for name in FACTS.names or ():
        problem.facts[name][:n] = take(name, (n,), FACTS[name])
    state.members[:m] = take("members", (m,), np.int64)
    state.inverse[: m + 1, : m + 1] = take("inverse", (m + 1, m + 1))
    problem.columns[:d, :n] = take("rows", (n, d), np.float32).T
    k = arrays.length_of("exact_moments", 1)
    rows.moments = take("moments", (2, k))
    problem.n = state.info[0].n = n
    problem.highest = max(problem.highest, int(problem.facts["number"][:n].max(initial=0)))
    state.info[0].m = m
    for name in ("n_steps", "n_null"):
        state.info[0][name] = as_int(name, found.get(name), 0, LARGEST_COUNT)
    state.info[0].is_inexact = checked(found.get("is_inexact"), bool, "is_inexact")
    for name in ("b", "drift", "near"):
        value = found.get(name)
        value = np.inf if name == "drift" and value is None else value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
            raise ValueError(f"{name} is no number")
        if name != "drift" and not np.isfinite(value):
            raise ValueError(f"{name} is not finite")
        state.info[0][name] = float(value)
    state.info[0].total = problem.share * math.fsum(problem.facts["weight"][:n])
    _check(problem)
    return problem


def _check(problem: ExactProblem) -> None:
    """Raise ValueError if a solution contradicts itself."""
    state, n, m = problem.state, problem.n, int(problem.state.info[0].m)
    members = state.members[:m]
    if m and (members.min() < 0 or members.max() >= n or len(set(members.tolist())) < m):
        raise ValueError("members: a slot is there twice, or is none")
    places = np.full(n, -1)
    places[members] = np.arange(m)
    if (state.place[:n] != places).any() or ((state.kind[:n] == MARGIN) != (places >= 0)).any():
        raise ValueError("members, places and kinds contradict each other")
    beta, low, high = (a[:n] for a in (state.beta, state.low, state.high))
    inside = (low <= beta) & (beta <= high) & (low <= 0.0) & (high >= 0.0)
    inside &= ((low == 0.0) | (high == 0.0)) & (low < high)
    inside[state.kind[:n] == AT_LOW] &= (beta == low)[state.kind[:n] == AT_LOW]
    inside[state.kind[:n] == AT_HIGH] &= (beta == high)[state.kind[:n] == AT_HIGH]
    if not inside.all():
        raise ValueError("a coefficient is not where it says")
    if len(set(problem.facts["number"][:n].tolist())) < n:
        raise ValueError("two examples have one number")
    if not n:
        return
    most = _MOST_ERROR * (1.0 + float((high - low).max()))
    own = np.array([problem.own_value(s) for s in range(n)])
    if not (np.abs(own - state.diagonal[:n]) <= 1e-9 * (1.0 + np.abs(own))).all():
        raise ValueError("diagonal: not k(x, x) of the examples")
    h = problem.fresh_gradients()
    # What is pending did not find its place, and says so: it is no sign of damage.
    settled = np.where(state.kind[:n] == PENDING, 0.0, h)
    wrong = np.abs(h - state.h[:n]).max()
    if not max(wrong, abs(beta.sum() - state.info[0].total), problem.violation(settled)) <= most:
        raise ValueError("the solution is not that of its examples")
