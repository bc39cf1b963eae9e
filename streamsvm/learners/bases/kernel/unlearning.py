"""Taking examples back from a kernel learner, and what still depends on them.

All that the learner keeps of the examples is removed from copies of its parts, which then take the
place of those that it has, in one step: an interruption leaves it as it was, or without them. Then
it finishes, so that the others are at their optimum. That can be interrupted, too; the examples are
gone by then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.features import forgetting
from streamsvm.features.names import Name
from streamsvm.labels.targets import Targets
from streamsvm.learners.bases.kernel.interfaces import AnyKernelLearner
from streamsvm.learners.bases.kernel.kernel_solver import KernelSolver, Sizes
from streamsvm.learners.bases.kernel.lasvm_solver import PairsSolver
from streamsvm.support.interruptions import Changes, change_together
from streamsvm.support.locked import refuse_to_learn
from streamsvm.support.row_columns import Columns, are_used
from streamsvm.support.rows import Rows, joined, sparse, taken

_OF_CALIBRATION = 4096
"""Of the examples so many are used for a calibration, the last ones: older ones hardly count."""

_KNOWN = 0.9
"""The share of all examples that must still be there for a new calibration."""


class Unlearned(NamedTuple):
    """What `unlearn` did.

    Attributes
    ----------
    removed
        The ids of which something was kept, ascending: nothing is now.
    not_kept
        The other ids: of these examples nothing was kept, or there were none.
    gap
        The normalised duality gap on the examples kept afterwards, as `duality_gap` returns it.

    """

    removed: list[int]
    not_kept: list[int]
    gap: float


class Remains(NamedTuple):
    """What a model still has of an example.

    Attributes
    ----------
    coefficients
        Its nonzero coefficients: one of two classes, else one for each problem or class.
    is_stored
        Whether its row is among those that the solver keeps.
    is_reserved
        Whether its row is in the reserve, or among the first ones, by which scale and width are
        found.
    is_waiting
        Whether it waits to be chosen by the `selection`, or its id is noted there.
    features
        The names of features that no other example kept has: they go with it.
    averages
        What else was computed from this example and others, in words; no row can be read from it.

    """

    coefficients: list[float]
    is_stored: bool
    is_reserved: bool
    is_waiting: bool
    features: list[Name]
    averages: list[str]

    @property
    def is_kept(self) -> bool:
        """Whether anything of the example itself is kept, which `unlearn` would remove."""
        return self.is_stored or self.is_reserved or self.is_waiting


class _Kept(NamedTuple):
    """What a learner keeps of some examples."""

    slots: np.ndarray  # int64: of the state
    numbers: np.ndarray  # int64: ids of rows that are kept somewhere, ascending
    x: Rows  # these rows, as they came
    signs: np.ndarray  # their signs, or the numbers of their classes
    waiting: np.ndarray  # int64: ids that the candidates know
    x_waiting: Rows  # the rows of these that wait

    @property
    def ids(self) -> np.ndarray:
        """All ids of which something is kept, ascending."""
        return np.union1d(self.numbers, self.waiting)


def unlearn(learner: AnyKernelLearner, ids: Iterable[int] | int) -> Unlearned:
    """Take examples back: the model goes on as one that is trained on the others.

    Coefficients, rows, cached kernel rows, the reserve, waiting candidates and feature names that
    no other example has are removed; then the learner finishes. See the page "Forgetting" for what
    stays, as averages of many examples. Other threads may predict meanwhile. Ctrl-C before the
    first step of finishing leaves the model as it was; after that the examples are gone, and the
    model can be used.

    Parameters
    ----------
    ids
        Numbers of examples, counted from 1, or the ids that were given to `learn_many`; or one.

    Returns
    -------
    Unlearned
        The ids removed, those not kept (no error), and the duality gap.

    Raises
    ------
    ParameterError
        The ids are no whole numbers of at least 1; nothing has changed.
    ModelBusyError
        As for `learn_one`.

    """
    wanted = checked_ids(ids)
    with learner.lock:
        if learner.is_learning:
            refuse_to_learn()
        learner.is_learning = True
        try:
            found = _remove(learner, wanted)
        finally:
            learner.is_learning = False
    # Its type as a learner that finishes: those without are not given this method.
    anyone = cast(Any, learner)
    if len(found) and learner.state is not None:
        anyone.finish()
    missing = wanted[~np.isin(wanted, found)]
    return Unlearned(found.tolist(), missing.tolist(), anyone.duality_gap())


def audit(learner: AnyKernelLearner, ids: Iterable[int] | int) -> dict[int, Remains]:
    """Tell what a model has of examples.

    Parameters
    ----------
    ids
        As for `unlearn`.

    Returns
    -------
    dict[int, Remains]
        By id; `is_kept` is False for an example of which nothing is kept.

    Raises
    ------
    ParameterError
        The ids are no whole numbers of at least 1.

    """
    wanted = checked_ids(ids)
    with learner.lock:
        words, found = _averages(learner), {}
        for number in wanted.tolist():
            own = _kept_of(learner, np.array([number]))
            columns = _dropped(learner, own)
            names = [learner.schema.names[c] for c in columns.tolist()]
            alpha = learner.expansion()[1][own.slots] if own.slots.size else np.zeros(0)
            found[number] = Remains(
                alpha[alpha != 0.0].tolist(),
                own.slots.size > 0,
                bool(_passed_by(learner, np.array([number])).size),
                own.waiting.size > 0,
                names,
                words,
            )
    return found


def keeps(learner: AnyKernelLearner, ids: np.ndarray) -> np.ndarray:
    """Return of which ids, int64 (n,), something is kept that `unlearn` would remove; bool (n,)."""
    with learner.lock:
        found = np.isin(ids, _passed_by(learner, ids))
        if learner.state is not None:
            found |= np.isin(ids, np.abs(learner.expansion()[2]))
        return found if learner.waiting is None else found | learner.waiting.knows(ids)


def checked_ids(ids: Any) -> np.ndarray:
    """Return ids, or one id, as int64, ascending, each once; ParameterError: they are none."""
    listed = list(ids) if isinstance(ids, Iterable) and not isinstance(ids, (str, bytes)) else [ids]
    for number in listed:
        is_whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        if not is_whole or not 1 <= number < 2**63:
            raise ParameterError(f"ids: {number!r:.40} is no whole number of at least 1")
    return np.unique(np.array(listed, np.int64))


# What is kept


def _kept_of(learner: AnyKernelLearner, wanted: np.ndarray) -> _Kept:
    """Return what the learner keeps of examples with these ids."""
    solver, preparation, d = learner.solver, learner.preparation, len(learner.schema)
    blocks: list[Rows] = []
    numbers, signs, slots = [np.zeros(0, np.int64)], [np.zeros(0)], np.zeros(0, np.int64)
    if preparation.trial is not None:
        x, facts = preparation.trial.joined(d)
        at = np.flatnonzero(np.isin(facts["entered"], wanted))
        labels, of = learner.targets.labels.seen, learner.targets.number_of
        blocks.append(taken(x, at))
        numbers.append(facts["entered"][at])
        signs.append(np.array([of(labels[c]) for c in facts["y"][at].tolist()], np.float64))
    if solver.kept_rows is not None:
        x, facts = solver.kept_rows.joined(d)
        at = np.flatnonzero(np.isin(facts["number"], wanted))
        blocks.append(preparation.unscaled(taken(x, at)))
        numbers.append(facts["number"][at])
        signs.append(facts["sign"][at])
    if solver.state is not None:
        rows, _, entered = learner.expansion()
        slots = np.flatnonzero(np.isin(np.abs(entered), wanted))
        # A merged vector is no row of an example.
        at = slots[entered[slots] > 0]
        blocks.append(preparation.unscaled(taken(rows, at)))
        numbers.append(entered[at])
        signs.append(np.asarray(solver.state.y, np.float64)[at])
    found, first = np.unique(np.concatenate(numbers), return_index=True)
    x = joined(blocks or [np.zeros((0, d), np.float32)], d)
    found = np.union1d(found, np.abs(learner.expansion()[2][slots]) if slots.size else found[:0])
    waiting, x_waiting = wanted[:0], taken(x, slots[:0])
    if learner.waiting is not None:
        waiting = wanted[learner.waiting.knows(wanted)]
        at = np.flatnonzero(np.isin(learner.waiting.facts["id"], wanted))
        x_waiting = taken(learner.waiting.rows(d), at)
    signs_of_first = np.concatenate(signs)[first]
    return _Kept(slots, found, taken(x, first), signs_of_first, waiting, x_waiting)


def _passed_by(learner: AnyKernelLearner, wanted: np.ndarray) -> np.ndarray:
    """Return the numbers that are in the reserve, or among the first examples."""
    trial, reserve = learner.preparation.trial, learner.solver.kept_rows
    first = wanted[:0] if trial is None else trial.facts()["entered"]
    later = wanted[:0] if reserve is None else reserve.facts()["number"]
    return wanted[np.isin(wanted, first) | np.isin(wanted, later)]


def _dropped(learner: AnyKernelLearner, own: _Kept) -> np.ndarray:
    """Return the columns that no other row has a value in, but one of these has."""
    d = len(learner.schema)
    if learner.schema.buckets is not None or learner.schema.is_range or not own.ids.size:
        # Hashed columns are of many names, and those of arrays have no names that tell anything.
        return np.zeros(0, np.int64)
    used = np.zeros(d, bool)
    trial, reserve, waiting = learner.preparation.trial, learner.solver.kept_rows, learner.waiting
    if trial is not None:
        x, facts = trial.joined(d)
        used |= are_used(taken(x, np.flatnonzero(~np.isin(facts["entered"], own.numbers))), d)
    if reserve is not None:
        x, facts = reserve.joined(d)
        used |= are_used(taken(x, np.flatnonzero(~np.isin(facts["number"], own.numbers))), d)
    if learner.state is not None:
        rows, _, entered = learner.expansion()
        others = np.setdiff1d(np.flatnonzero(entered), own.slots)
        used |= are_used(taken(rows, others), d)
    if waiting is not None:
        stay = np.flatnonzero(~np.isin(waiting.facts["id"], own.waiting))
        used |= are_used(taken(waiting.rows(d), stay), d)
    return np.flatnonzero((are_used(own.x, d) | are_used(own.x_waiting, d)) & ~used)


def _averages(learner: AnyKernelLearner) -> list[str]:
    """Return in words what was computed from all examples."""
    if not learner.n_examples:
        return []
    preparation, found = learner.preparation, ["the labels, and how many examples were learnt"]
    if preparation.follows_rule:
        found.append("gamma, set by the first examples")
    if preparation.choice is not None:
        found.append("which of scales, gamma and C was best on the first examples")
    if preparation.scales is not None or preparation.factors is not None:
        found.append("scales of features")
    if not learner.is_sparse and learner.schema.missing.policy == "mean":
        found.append("means that stand for missing values, where values were missing")
    if not _is_known_well(learner):
        found.append("the calibration of probabilities, by the last few thousand examples")
    if learner.solver.kept_rows is not None and learner.solver.kept_rows.n_rows:
        found.append("the margins that rows of the reserve had when they came")
    if getattr(learner, "max_support_vectors", None) is not None:
        found.append("vectors that others were merged into")
    if learner.state is not None:
        found.append("sums of steps and of gaps, for counters and the certificate")
    return found


# Removing


def _remove(learner: AnyKernelLearner, wanted: np.ndarray) -> np.ndarray:
    """Remove what is kept of examples; return their ids."""
    own = _kept_of(learner, wanted)
    found = own.ids
    if not found.size:
        return found
    d, dropped = len(learner.schema), _dropped(learner, own)
    columns = np.setdiff1d(np.arange(d), dropped) if dropped.size else None
    new = _parts_without(learner, own, columns)
    changes: list[Changes] = [(learner.__dict__, new)]
    if learner.observer is not None:
        changes.append(learner.observer.without(found, columns))
    change_together(changes)
    return found


def _parts_without(learner: AnyKernelLearner, own: _Kept, columns: Columns) -> dict[str, Any]:
    """Return the parts of the learner without these examples, over some columns."""
    solver, d, numbers = learner.solver, len(learner.schema), own.ids
    # What waits was counted, too, when it came.
    schema = forgetting.without(learner.schema, joined([own.x, own.x_waiting], d), columns)
    preparation = learner.preparation.without(learner, numbers, own.x, columns)
    if solver.state is not None:
        solver = solver.without(own.slots, columns, d)
    if solver.kept_rows is not None:
        kept = np.flatnonzero(~np.isin(solver.kept_rows.facts()["number"], numbers))
        solver = solver.changed(kept_rows=solver.kept_rows.only(kept, columns))
    waiting = learner.waiting
    if waiting is not None:
        waiting = waiting.without(numbers, columns)
    parts = {"solver": solver, "preparation": preparation, "schema": schema, "waiting": waiting}
    parts |= {"costs": learner.costs.without(own.signs), "event_path": None, "event_reader": None}
    if _is_known_well(learner):
        sizes = learner.sizes(len(schema))._replace(schema=schema)
        parts |= _calibrated(solver, learner.targets, sizes)
    return parts


# The calibration of probabilities


def _is_known_well(learner: AnyKernelLearner) -> bool:
    """Tell whether nearly all examples are kept, or are in the reserve.

    Support vectors alone are those that are hard to tell: by them all would seem unsure.
    """
    if learner.state is None:
        return True
    known = learner.kept_numbers()
    reserve = learner.solver.kept_rows
    if reserve is not None:
        known = np.union1d(known, reserve.facts()["number"])
    return len(known) >= _KNOWN * learner.n_examples


def _calibrated(solver: KernelSolver, targets: Targets, sizes: Sizes) -> dict[str, Any]:
    """Return targets, and solver, with a calibration by the last of the examples that are known.

    Their margins are those of the model now. Without their own terms, which would be those of
    examples not learnt yet, support vectors at their bound are wrong without exception, as the
    others cannot take their place: probabilities would be far too unsure.
    """
    if solver.state is None or targets.n_classes < 2:
        return {"targets": type(targets)(targets.labels)}
    x, signs = _last_known(solver, sizes)
    if isinstance(solver, PairsSolver):
        return {"solver": solver.calibrated(x, signs, sizes)}
    margins = targets.zeros(len(signs))
    solver.write_margins(solver.state, x, margins)
    new = type(targets)(targets.labels)
    new.calibrate(margins, signs)
    return {"targets": new}


def _last_known(solver: KernelSolver, sizes: Sizes) -> tuple[Rows, np.ndarray]:
    """Return the last rows that are kept, or in the reserve, as the solver has them; and signs."""
    d = len(sizes.schema)
    rows, _, entered = solver.expansion(d)
    live = np.flatnonzero(entered > 0)
    blocks, numbers = [taken(rows, live)], entered[live]
    signs = np.asarray(solver.state.y, np.float64)[live]
    if solver.kept_rows is not None:
        x, facts = solver.kept_rows.rows()
        others = np.flatnonzero(~np.isin(facts["number"], numbers))
        blocks.append(taken(x, others))
        numbers = np.append(numbers, facts["number"][others])
        signs = np.append(signs, facts["sign"][others])
    last = np.argsort(numbers, kind="stable")[-_OF_CALIBRATION:]
    x = taken(joined(blocks, d), last)
    return sparse(x) if sizes.is_sparse else x, signs[last]
