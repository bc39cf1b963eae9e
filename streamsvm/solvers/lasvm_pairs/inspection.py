"""What users and monitors ask of LASVM for several classes.

It is measured now and then: NumPy is fast enough, and takes no seconds to compile.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.lasvm.gap import lasvm_gap
from streamsvm.solvers.lasvm_pairs.problems import REST, members_of
from streamsvm.solvers.lasvm_pairs.state import PairsState


def _view(state: PairsState, p: int) -> Any:
    """Return what `lasvm_gap` reads of the state of a problem."""
    of, names = state.problems, ("alpha", "gradient", "lower", "upper", "y")
    start, n = int(of.segments[p].start), int(of.table[p].n)
    arrays = {name: getattr(of, name)[start : start + n] for name in names}
    return SimpleNamespace(info=of.table[p : p + 1], **arrays)


def labels_of(state: PairsState, seen: list[Any]) -> list[tuple[Any, Any]]:
    """Return the positive and the negative label of each problem, None for all other labels."""
    sides = zip(
        state.problems.segments["positive"].tolist(),
        state.problems.segments["negative"].tolist(),
        strict=True,
    )
    return [(seen[a], None if b == REST else seen[b]) for a, b in sides]


def coefficients(state: PairsState) -> np.ndarray:
    """Return the coefficients of all slots in use, float64 (n, problems)."""
    of, found = state.problems, np.zeros((int(state.info[0].n), len(state.problems.table)))
    at, owner = members_of(of), np.repeat(np.arange(len(of.table)), of.table["n"])
    nonzero = of.alpha[at] != 0.0
    found[of.slot[at[nonzero]], owner[nonzero]] = of.alpha[at[nonzero]]
    return found


def n_support_vectors(state: PairsState) -> int:
    """Return the number of examples with a nonzero coefficient in some problem."""
    of, at = state.problems, members_of(state.problems)
    return len(np.unique(of.slot[at[of.alpha[at] != 0.0]]))


def at_bound(state: PairsState) -> np.ndarray:
    """Tell of each support vector whether its coefficient is at a bound C_i in some problem."""
    of, at = state.problems, members_of(state.problems)
    at = at[of.alpha[at] != 0.0]
    is_at_bound = (of.alpha[at] == of.lower[at]) | (of.alpha[at] == of.upper[at])
    return np.isin(np.unique(of.slot[at]), of.slot[at[is_at_bound]])


def sum_of_coefficients(state: PairsState) -> float:
    """Return the sum of the absolute coefficients over all problems."""
    return float(np.abs(state.problems.alpha[members_of(state.problems)]).sum())


def dual(state: PairsState) -> float:
    """Return the dual objective, summed over the problems."""
    return float(state.problems.table["dual"].sum())


def squared_norm(state: PairsState) -> float:
    """Return the square of |w|, summed over the problems."""
    return max(0.0, 2.0 * (sum_of_coefficients(state) - dual(state)))


def biases(state: PairsState) -> list[float]:
    """Return the bias of each problem."""
    table = state.problems.table
    low, high = table["g_min"], table["g_max"]
    has_low, has_high = table["j"] >= 0, table["i"] >= 0
    one = np.where(has_high, high, np.where(has_low, low, 0.0))
    both = has_low & has_high
    return np.where(both, 0.5 * (np.where(both, low, 0) + np.where(both, high, 0)), one).tolist()


def delta(state: PairsState) -> float:
    """Return the largest g_max - g_min of a problem."""
    table = state.problems.table
    both = table[(table["i"] >= 0) & (table["j"] >= 0)]
    return float((both["g_max"] - both["g_min"]).max(initial=0.0))


def kept_gap(state: PairsState) -> KeptGap:
    """Return the gap on the examples that each problem keeps, summed over the problems."""
    total, cost = 0.0, 0.0
    for p, bias in enumerate(biases(state)):
        gap = lasvm_gap(_view(state, p), bias)
        total, cost = total + gap.total, cost + gap.cost
    return KeptGap(total, cost)


def counters(state: PairsState) -> dict[str, int]:
    """Return the counts since the first example, over all problems."""
    table, counts = state.problems.table, state.problems.counts.tolist()
    return {
        "steps": int(table["n_steps"].sum()),
        "null_steps": int(table["n_null"].sum()),
        "kernel_values": int(state.info[0].n_values) + counts[3],
        "cached_rows_hit": counts[0],
        "cached_rows_missed": counts[1],
        "cached_rows_extended": counts[2],
    }
