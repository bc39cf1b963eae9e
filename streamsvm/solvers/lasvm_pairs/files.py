"""The problems of LASVM for several classes as arrays for model files, and back, checked.

The state's own arrays are written by their declarations. Here are the scalars of the problems, and
the members of all problems, one problem after the other, without the room between them.
"""

from __future__ import annotations

import numpy as np

from streamsvm.solvers.lasvm.state import INFO, are_feasible
from streamsvm.solvers.lasvm_pairs.classes import sides_of
from streamsvm.solvers.lasvm_pairs.layout import laid_out
from streamsvm.solvers.lasvm_pairs.problems import REST, members_of, with_problems
from streamsvm.solvers.lasvm_pairs.state import PairsState
from streamsvm.support.declaration import BOX, COUNT, FINITE, Field, NamedArrays, Range, index_of
from streamsvm.support.tiles import PANEL

# Without those of `solvers.lasvm.bounds`, which is for two classes.
_NOT_WRITTEN = ("ready", "n_watched", "n_wrong", "wrong_of_late", "n_over")
_SCALARS = tuple(name for name in INFO.names or () if name not in _NOT_WRITTEN)
_SIGNED = ("i", "j")
_MEMBERS = {
    "slot": Field(("members",), np.int64, range=index_of("slots")),
    "alpha": Field(("members",)),
    "gradient": Field(("members",)),
    "lower": Field(("members",), range=Range(-BOX.high, 0.0)),
    "upper": Field(("members",), range=BOX),
}


def to_arrays(state: PairsState) -> dict[str, np.ndarray]:
    """Return the problems as arrays by name."""
    of = state.problems
    arrays = {f"problem_{name}": of.table[name].copy() for name in _SCALARS}
    at = members_of(of)
    arrays |= {f"member_{name}": getattr(of, name)[at] for name in _MEMBERS}
    # Of a member that was removed it depends on which kernel rows were cached.
    arrays["member_gradient"][arrays["member_lower"] == arrays["member_upper"]] = 0.0
    return arrays | {"problem_calibration": of.calibration, "cache_counts": of.counts}


def _range_of(name: str) -> Range:
    if name in _SIGNED:
        return Range(-1, 2.0**62)
    if name in ("g_max", "g_min"):
        return Range(infinite=True)
    return COUNT if INFO[name].kind == "i" else FINITE


def with_arrays(
    state: PairsState, arrays: NamedArrays, rest: bool, cache_bytes: int, d: int
) -> PairsState:
    """Return a state that was read, without problems, with those that `to_arrays` returned.

    The arrays may be wrong: ValueError if one is missing, not as declared, or contradicts another.
    See `classes.with_classes` for rest, cache_bytes and d.
    """
    n_classes, n = int(state.info[0].n_classes), int(state.info[0].n)
    of = with_problems(state.problems, sides_of(0, n_classes, rest), len(state.problems.problem_of))
    sizes = {"problems": len(of.table), "slots": n}
    for name in _SCALARS:
        field = Field(("problems",), INFO[name], range=_range_of(name))
        of.table[name] = arrays.take(f"problem_{name}", field, sizes)
    of.calibration[:] = arrays.take("problem_calibration", Field(("problems", 5)), sizes)
    of.counts[:] = arrays.take("cache_counts", Field((4,), np.int64, range=COUNT), sizes)
    sizes["members"] = sum(of.table["n"].tolist())
    found = {name: arrays.take(f"member_{name}", f, sizes) for name, f in _MEMBERS.items()}
    # Laid out without members first, as those that are given have no places yet.
    counts = of.table["n"].copy()
    of.table["n"] = 0
    of = laid_out(of, np.maximum(PANEL, -(-2 * counts // PANEL) * PANEL), cache_bytes, d)
    of.table["n"] = counts
    _fill(state._replace(problems=of), found)
    state = state._replace(problems=of)
    _check(state)
    return state


def _fill(state: PairsState, found: dict[str, np.ndarray]) -> None:
    """Write the members that were found, and what follows from their slots."""
    of, slot = state.problems, found["slot"]
    at, owner = members_of(of), np.repeat(np.arange(len(of.table)), of.table["n"])
    for name, array in found.items():
        getattr(of, name)[at] = array
    is_live = found["lower"] != found["upper"]
    of.entered[at] = np.where(is_live, state.store.entered[slot], 0)
    of.weight[at] = np.where(is_live, state.store.weight[slot], 0.0)
    of.diagonal[at] = state.diagonal[slot]
    of.y[at] = np.where(state.y[slot] == of.segments["positive"][owner], 1.0, -1.0)


def _check(state: PairsState) -> None:
    """Refuse problems that contradict each other or the store."""
    of, n = state.problems, int(state.info[0].n)
    at, owner = members_of(of), np.repeat(np.arange(len(of.table)), of.table["n"])
    alpha, lower, upper = of.alpha[at], of.lower[at], of.upper[at]
    is_live, slot, y = lower != upper, of.slot[at], of.y[at]
    fits = are_feasible(alpha, lower, upper, owner, of.table["cost_most"])
    fits = fits and bool(np.where(y > 0, lower == 0.0, upper == 0.0)[is_live].all())
    negative = of.segments["negative"][owner]
    fits = fits and bool(
        ((y > 0) | (negative == REST) | (state.y[slot] == negative))[is_live].all()
    )
    wanted = np.bincount(slot[is_live], minlength=n)
    fits = fits and bool((wanted[:n] == state.wanted[:n]).all())
    pairs = owner[is_live] * np.int64(n + 1) + slot[is_live]
    fits = fits and len(np.unique(pairs)) == len(pairs)
    dead = np.bincount(owner[~is_live], minlength=len(of.table))
    fits = fits and bool((dead == of.table["n_dead"]).all())
    fits = fits and int((state.wanted[:n] == 0).sum()) == int(state.info[0].n_dead)
    for name in _SIGNED:
        fits = fits and bool((of.table[name] < np.maximum(of.table["n"], 0)).all())
    if not fits:
        raise ValueError("a member, slot or problem contradicts another")
