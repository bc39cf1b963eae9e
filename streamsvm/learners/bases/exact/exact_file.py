"""The examples and the solution of an exact SVM in model files."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamsvm._parameter_checks import LARGEST_FACTOR, LARGEST_ID
from streamsvm.features.missing import N_ROWS, are_possible
from streamsvm.features.schema import Schema
from streamsvm.model_files.codec import LARGEST_COUNT, Content
from streamsvm.model_files.json_values import checked, kernel_as_json, kernel_from_json
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


def as_file(learner: Any) -> Content:
    """Return the solution, and the counts of classes, as JSON values and arrays."""
    content, arrays = solution_as_file(learner)
    return content, arrays | {"exact_counts": learner.costs.counts}


def read(learner: Any, content: dict[str, Any], arrays: NamedArrays) -> None:
    """Set what `as_file` returned; raise ValueError if it does not hold together."""
    problem = read_solution(learner, content, arrays)
    learner.costs = learner.costs.counting(arrays.take("exact_counts", Field((2,)), {}))
    learner.n_passed = int(learner.n_learnt[0]) - problem.n_added
    if learner.n_passed < 0:
        raise ValueError("more examples were added than learnt")
    learner.problem = problem


def stream_as_file(learner: Any) -> Content:
    """Return the solution of examples without labels, and what is known of features."""
    content, arrays = solution_as_file(learner)
    schema = learner.schema
    content |= {"n_ignored": schema.n_ignored, "n_passed": learner.n_passed}
    return content, arrays | {"missing": schema.missing.statistics[:, : len(schema.names)]}


def read_stream(learner: Any, content: dict[str, Any], arrays: NamedArrays) -> None:
    """Set what `stream_as_file` returned; raise ValueError if it does not hold together."""
    names = learner.schema.names
    if len(names) > learner.max_features:
        raise ValueError("there are more features than max_features")
    learner.schema = Schema(names, learner.max_features, None, learner.missing)
    found = arrays.take("missing", Field((N_ROWS, len(names))), {})
    if not are_possible(found):
        raise ValueError("missing: the sums or counts of features contradict each other")
    learner.schema.missing.keep(found)
    learner.schema.n_ignored = as_int("n_ignored", content.get("n_ignored"), 0)
    learner.n_passed = as_int("n_passed", content.get("n_passed"), 0, LARGEST_COUNT)
    learner.problem = read_solution(learner, content, arrays)


def solution_as_file(learner: Any) -> Content:
    """Return the solution as JSON values and arrays; it is settled first."""
    problem: ExactProblem = learner.problem
    problem.settle()
    state, n = problem.state, problem.n
    m = int(state.info[0].m)
    arrays = {f"exact_{name}": getattr(state, name)[:n] for name in OF_SLOTS}
    arrays |= {f"exact_{name}": problem.facts[name][:n].copy() for name in FACTS.names or ()}
    arrays["exact_members"] = state.members[:m]
    arrays["exact_inverse"] = np.ascontiguousarray(state.inverse[: m + 1, : m + 1])
    arrays["exact_rows"] = problem.rows(len(learner.schema))
    arrays["exact_moments"] = learner.moments
    content = {name: getattr(problem, name) for name in (*_COUNTED, "highest")}
    content |= {name: state.info[0][name].item() for name in _OF_INFO}
    if not np.isfinite(content["drift"]):
        # JSON has no infinity: Q^-1 is computed anew before it is used.
        content["drift"] = None
    return {"exact": content | {"kernel": kernel_as_json(problem.kernel)}}, arrays


def read_solution(learner: Any, content: dict[str, Any], arrays: NamedArrays) -> ExactProblem:
    """Return the problem that `solution_as_file` was given; ValueError if it is inconsistent."""
    found = checked(content.get("exact"), dict, "exact")
    d, n = len(learner.schema), arrays.length_of("exact_beta", 0)
    kernel = kernel_from_json(checked(found.get("kernel"), dict, "the kernel"))
    problem: ExactProblem = learner.problem.emptied(kernel)
    for name in _COUNTED:
        setattr(problem, name, as_int(name, found.get(name), 0, LARGEST_COUNT))
    problem.highest = as_int("highest", found.get("highest", 0), 0, LARGEST_ID)
    m = arrays.length_of("exact_members", 0)
    if m > n:
        raise ValueError("more examples are on the margin than there are")
    problem.make_room(n, m, d)
    state = problem.state

    def take(name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
        declared = Field(shape, dtype, range=_RANGES.get(name, Range()))
        return arrays.take(f"exact_{name}", declared, {})

    for name in OF_SLOTS:
        getattr(state, name)[:n] = take(name, (n,), np.int64 if name in _WHOLE else np.float64)
    for name in FACTS.names or ():
        # Older files have no y: it is the target of classes.
        is_there = name != "y" or "exact_y" in arrays
        problem.facts[name][:n] = take(name, (n,), FACTS[name]) if is_there else state.target[:n]
    state.members[:m] = take("members", (m,), np.int64)
    state.inverse[: m + 1, : m + 1] = take("inverse", (m + 1, m + 1))
    problem.columns[:d, :n] = take("rows", (n, d), np.float32).T
    k = arrays.length_of("exact_moments", 1)
    learner.moments = take("moments", (2, k))
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
