"""What a kernel learner keeps of examples, and where: what `unlearn` removes, and `audit` tells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.labels.labelled_rows import Ids
from streamsvm.labels.targets import Targets
from streamsvm.models.kernel.kernel_solver import DualSolver
from streamsvm.models.kernel.preparation import Preparation
from streamsvm.selection.candidates import Candidates
from streamsvm.support.rows import Rows, are_used, joined, sparse, taken

_KNOWN = 0.9
"""The share of all examples that must still be there for a new calibration."""


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


class Kept(NamedTuple):
    """What a learner keeps of some examples."""

    slots: np.ndarray  # int64: of the state
    numbers: np.ndarray  # int64: ids of rows that are kept somewhere, ascending
    x: Rows  # these rows, as they came
    classes: np.ndarray  # float64: the numbers of their classes
    waiting: np.ndarray  # int64: ids that the candidates know
    x_waiting: Rows  # the rows of these that wait

    @property
    def ids(self) -> np.ndarray:
        """All ids of which something is kept, ascending."""
        return np.union1d(self.numbers, self.waiting)


def checked_ids(ids: Ids | int) -> np.ndarray:
    """Return ids, or one id, as int64, ascending, each once; ParameterError: they are none."""
    listed: list[Any] = [ids]
    if isinstance(ids, Iterable) and not isinstance(ids, (str, bytes)):
        listed = list(ids)
    for number in listed:
        is_whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        if not is_whole or not 1 <= number < 2**63:
            raise ParameterError(f"ids: {number!r:.40} is no whole number of at least 1")
    return np.unique(np.array(listed, np.int64))


class Traces(NamedTuple):
    """The parts of a kernel learner that keep examples, and what they keep."""

    solver: DualSolver
    preparation: Preparation
    targets: Targets
    schema: Schema
    waiting: Candidates | None
    n_examples: int
    is_sparse: bool
    is_bounded: bool  # whether vectors are merged

    def remains(self, wanted: np.ndarray) -> dict[int, Remains]:
        """Return what there is of examples with these ids, by id."""
        words, kept = self._averages(), self.kept_of(wanted)
        numbers, coefficients = self._stored()
        reserved, owners, names = self._passed_by(), self._owners(), self.schema.names
        found = {}
        for number in wanted.tolist():
            own = coefficients[numbers == number]
            found[number] = Remains(
                coefficients=own[own != 0.0].tolist(),
                is_stored=len(own) > 0,
                is_reserved=number in reserved,
                is_waiting=number in kept.waiting,
                features=[names[c] for c in np.flatnonzero(owners == number).tolist()],
                averages=words,
            )
        return found

    def keeps(self, ids: np.ndarray) -> np.ndarray:
        """Return of which ids, int64 (n,), something is kept; bool (n,)."""
        found = np.isin(ids, self._passed_by()) | np.isin(ids, self._stored()[0])
        return found if self.waiting is None else found | self.waiting.knows(ids)

    def kept_of(self, wanted: np.ndarray) -> Kept:
        """Return what the learner keeps of examples with these ids."""
        solver, preparation, d = self.solver, self.preparation, len(self.schema)
        blocks: list[Rows] = []
        numbers, classes, slots = [np.zeros(0, np.int64)], [np.zeros(0)], np.zeros(0, np.int64)
        if preparation.trial is not None:
            x, facts = preparation.trial.joined(d)
            at = np.flatnonzero(np.isin(facts["entered"], wanted))
            blocks.append(taken(x, at))
            numbers.append(facts["entered"][at])
            classes.append(facts["y"][at].astype(np.float64))
        if solver.kept_rows is not None:
            x, facts = solver.kept_rows.joined(d)
            at = np.flatnonzero(np.isin(facts["number"], wanted))
            blocks.append(preparation.unscaled(taken(x, at)))
            numbers.append(facts["number"][at])
            classes.append(facts["class"][at])
        if solver.state is not None:
            rows, _, entered = solver.expansion(d)
            slots = np.flatnonzero(np.isin(np.abs(entered), wanted))
            # A merged vector is no row of an example.
            at = slots[entered[slots] > 0]
            blocks.append(preparation.unscaled(taken(rows, at)))
            numbers.append(entered[at])
            classes.append(solver.classes_of(at))
        found, first = np.unique(np.concatenate(numbers), return_index=True)
        x = joined(blocks or [np.zeros((0, d), np.float32)], d)
        found = np.union1d(found, self._stored()[0][slots])
        waiting, x_waiting = wanted[:0], taken(x, slots[:0])
        if self.waiting is not None:
            waiting = wanted[self.waiting.knows(wanted)]
            at = np.flatnonzero(np.isin(self.waiting.facts["id"], wanted))
            x_waiting = taken(self.waiting.rows(d), at)
        of_first = np.concatenate(classes)[first]
        return Kept(slots, found, taken(x, first), of_first, waiting, x_waiting)

    def dropped(self, ids: np.ndarray) -> np.ndarray:
        """Return the columns in which rows with these ids have a value, and no others."""
        d = len(self.schema)
        if not self._has_names():
            return np.zeros(0, np.int64)
        x, numbers = self._all_rows()
        gone = np.isin(numbers, ids)
        is_used, is_left = (are_used(taken(x, np.flatnonzero(of)), d) for of in (gone, ~gone))
        return np.flatnonzero(is_used & ~is_left)

    def _stored(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of the example in each slot, 0 for none, and its coefficients.

        A merged vector has the number of the newest of those that it stands for.
        """
        if self.solver.state is None:
            return np.zeros(0, np.int64), np.zeros(0)
        _, coefficients, entered = self.solver.expansion(len(self.schema))
        return np.abs(entered), coefficients

    def _passed_by(self) -> np.ndarray:
        """Return the numbers that are in the reserve, or among the first examples."""
        trial, reserve = self.preparation.trial, self.solver.kept_rows
        nothing = np.zeros(0, np.int64)
        first = nothing if trial is None else trial.facts()["entered"]
        return np.union1d(first, nothing if reserve is None else reserve.facts()["number"])

    def _all_rows(self) -> tuple[Rows, np.ndarray]:
        """Return all rows that are kept, some in several places, and their ids; 0: none."""
        trial, reserve, waiting = self.preparation.trial, self.solver.kept_rows, self.waiting
        d = len(self.schema)
        found: list[tuple[Rows, np.ndarray]] = [
            (np.zeros((0, d), np.float32), np.zeros(0, np.int64))
        ]
        if trial is not None:
            x, facts = trial.joined(d)
            found.append((x, facts["entered"]))
        if reserve is not None:
            x, facts = reserve.joined(d)
            found.append((x, facts["number"]))
        if self.solver.state is not None:
            rows, _, entered = self.solver.expansion(len(self.schema))
            live = np.flatnonzero(entered)
            found.append((taken(rows, live), np.abs(entered[live])))
        if waiting is not None:
            found.append((waiting.rows(d), waiting.facts["id"]))
        return joined([x for x, _ in found], d), np.concatenate([numbers for _, numbers in found])

    def _owners(self) -> np.ndarray:
        """Return the id of the only example with a value in each column, 0 if there is none."""
        d = len(self.schema)
        first, last = np.full(d, np.iinfo(np.int64).max), np.zeros(d, np.int64)
        if self._has_names():
            x, numbers = self._all_rows()
            rows = sparse(x)
            of_values = np.repeat(numbers, np.diff(rows.start))
            np.minimum.at(first, rows.columns, of_values)
            np.maximum.at(last, rows.columns, of_values)
        return np.where(first == last, last, 0)

    def _averages(self) -> list[str]:
        """Return in words what was computed from all examples."""
        if not self.n_examples:
            return []
        preparation, found = self.preparation, ["the labels, and how many examples were learnt"]
        if preparation.follows_rule:
            found.append("gamma, set by the first examples")
        if preparation.choice is not None:
            found.append("which of scales, gamma and C was best on the first examples")
        if preparation.scales is not None or preparation.factors is not None:
            found.append("scales of features")
        if not self.is_sparse and self.schema.missing.policy == "mean":
            found.append("means that stand for missing values, where values were missing")
        if not self.is_known_well():
            found.append("the calibration of probabilities, by the last few thousand examples")
        if self.solver.kept_rows is not None and self.solver.kept_rows.n_rows:
            found.append("the margins that rows of the reserve had when they came")
        if self.is_bounded:
            found.append("vectors that others were merged into")
        if self.solver.state is not None:
            found.append("sums of steps and of gaps, for counters and the certificate")
        return found

    def _has_names(self) -> bool:
        """Tell whether columns have names that may tell something, as those of arrays do not."""
        return self.schema.buckets is None and not self.schema.is_range

    def is_known_well(self) -> bool:
        """Tell whether nearly all examples are kept, or are in the reserve.

        Support vectors alone are those that are hard to tell: by them all would seem unsure.
        """
        if self.solver.state is None:
            return True
        known = self.solver.kept_numbers()
        reserve = self.solver.kept_rows
        if reserve is not None:
            known = np.union1d(known, reserve.facts()["number"])
        return len(known) >= _KNOWN * self.n_examples
