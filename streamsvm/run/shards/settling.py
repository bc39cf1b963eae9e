"""The bias of a model all of whose support vectors are at their bounds.

Then all biases of an interval are as good for its support vectors, and a learner takes the middle.
An example without a coefficient whose margin is too small there violates nothing in the dual: no
step would make it a support vector. But the best bias in the primal depends on it; and two such
examples, of both labels, may violate optimality together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.learners.bases.kernel import kernel_batches
from streamsvm.learners.bases.kernel.lasvm_solver import PairsSolver
from streamsvm.learners.bases.kernel.reserves.reserving_solver import reserving
from streamsvm.learners.lasvm import LASVMClassifier
from streamsvm.solvers.lasvm_pairs.problems import NONE, REST, members_of
from streamsvm.support.rows import shape, sparse, taken


def settle_bias(learner: LASVMClassifier) -> bool:
    """Keep examples of the reserve, with coefficient 0, that bound the interval of the bias.

    That is at most two of each problem whose interval is open; or, if no bias is left, all whose
    margins are too small in its middle. Then the learner has to finish again: returns True.
    """
    solver = reserving(learner)
    if solver.state is None:
        return False
    is_several = isinstance(solver, PairsSolver)
    table = solver.state.problems.table if is_several else solver.state.info
    bounded = (table["i"] >= 0) & (table["j"] >= 0)
    is_open = bounded & (table["g_min"] - table["g_max"] > learner.tau)
    x, facts = solver.kept_rows.rows()
    if not is_open.any() or not len(facts):
        return False
    x = sparse(x) if learner.is_sparse else x
    margins, signs, is_kept = (_of_several if is_several else _of_two)(learner, x, facts)
    f = margins - np.array(solver.biases)
    wanted, is_crossed = np.full(f.shape, NONE, np.int64), False
    for p in np.flatnonzero(is_open):
        g, y = signs[:, p] - f[:, p], np.where(is_kept[:, p], 0.0, signs[:, p])
        # The largest g of positives and the least one of negatives bound the bias.
        low = np.where(y > 0.0, g, -np.inf)
        high = np.where(y < 0.0, g, np.inf)
        if max(low.max(), table["g_max"][p]) > min(high.min(), table["g_min"][p]) + learner.tau:
            is_crossed = True
            wanted[y * (g - solver.biases[p]) > 0.0, p] = p
            continue
        if low.max() > table["g_max"][p]:
            wanted[np.argmax(low), p] = p
        if high.min() < table["g_min"][p]:
            wanted[np.argmin(high), p] = p
    rows = np.flatnonzero((wanted != NONE).any(axis=1))
    some, weights = taken(x, rows), np.ascontiguousarray(facts["weight"][rows])
    sides, numbers = (np.ascontiguousarray(facts[name][rows]) for name in ("sign", "number"))
    costs, diagonal = learner.costs_now(sides, weights), learner.diagonal_of(some)
    more = (f[rows], wanted[rows]) if is_several else (f[rows, 0],)
    solver.state_for(learner.sizes(shape(some)[1]))
    solver.add_rows((some, sides, costs, weights, numbers, diagonal, *more))
    return is_crossed


def _of_two(learner: Any, x: Any, facts: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return margins and signs of rows in each problem, and where they are kept."""
    is_kept = np.isin(facts["number"], learner.kept_numbers())
    margins = kernel_batches.margins_of(learner, x)
    return margins[:, None], facts["sign"][:, None], is_kept[:, None]


def _of_several(learner: Any, x: Any, facts: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same of several classes; a row that a problem does not learn has the sign 0."""
    margins = learner.solver.problem_margins(x, learner.sizes(shape(x)[1]))
    of = learner.state.problems
    classes = facts["sign"].astype(np.int64)[:, None]
    positive, negative = of.segments["positive"], of.segments["negative"]
    is_other = (classes == negative) | (negative == REST)
    signs = np.where(classes == positive, 1.0, np.where(is_other, -1.0, 0.0))
    at, owner = members_of(of), np.repeat(np.arange(len(of.table)), of.table["n"])
    is_kept = np.zeros(signs.shape, bool)
    for p in range(len(of.table)):
        is_kept[:, p] = np.isin(facts["number"], of.entered[at[owner == p]])
    return margins, signs, is_kept
