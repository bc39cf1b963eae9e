"""LASVM as the solver of a model: one for two classes, and one for several."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import TypeVar

import numpy as np

from streamsvm.model_files.json_values import Content, Json
from streamsvm.models.kernel import loaded
from streamsvm.models.kernel.kernel_solver import KernelSolver, KernelState, ReservingSolver, Sizes
from streamsvm.models.kernel.reserve import Reserve
from streamsvm.models.kernel.revisits import Revisits, RevisitsOfClasses
from streamsvm.models.model import Kernel
from streamsvm.models.outputs import Outputs, sides_of
from streamsvm.solvers.bounds import UNBOUNDED, Budget
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.lasvm import bounds as lasvm_bounds
from streamsvm.solvers.lasvm import finish as lasvm_finish
from streamsvm.solvers.lasvm import state as lasvm_state
from streamsvm.solvers.lasvm import step as lasvm
from streamsvm.solvers.lasvm.gap import lasvm_gap
from streamsvm.solvers.lasvm_pairs import bounds as pairs_bounds
from streamsvm.solvers.lasvm_pairs import classes, files, layout
from streamsvm.solvers.lasvm_pairs import finish as pairs_finish
from streamsvm.solvers.lasvm_pairs import state as pairs_state
from streamsvm.solvers.lasvm_pairs import step as pairs
from streamsvm.solvers.lasvm_pairs.needed import may_leave_out
from streamsvm.solvers.lasvm_pairs.problems import REST, members_of
from streamsvm.support import stores
from streamsvm.support.calibration import new_calibration, update_calibration
from streamsvm.support.declaration import NamedArrays
from streamsvm.support.dense_store import DenseStore
from streamsvm.support.limits import usable_memory
from streamsvm.support.rows import Rows, cut, shape
from streamsvm.support.states import new_state

_OF_GAP = "alpha", "gradient", "lower", "upper", "y"
"""What `lasvm_gap` reads of the state of a problem."""

Label = TypeVar("Label")

_FINISH_STEPS = 100_000
"""Number of steps between two reports of progress, and possible interruptions."""


class LASVMSolver(ReservingSolver):
    """LASVM for two classes.

    `kept_rows` is an empty reserve; `is_one_vs_rest` tells whether several classes have a problem
    each, and not one for each pair.
    """

    step, states = lasvm, lasvm_state
    is_told_classes = True
    revisits = Revisits
    finishing: ModuleType = lasvm_finish
    """The module with `finish_some`, which makes steps on the rows kept, and `add_rows`."""

    def __init__(
        self,
        kernel: Kernel | None,
        schedule: lasvm.Schedule,
        cache_mb: float | None,
        kept_rows: Reserve,
        is_one_vs_rest: bool,
    ) -> None:
        super().__init__(kernel, schedule, 200.0 if cache_mb is None else cache_mb, kept_rows)
        # Rows of several problems, one by one out of a common store, take far longer to compute.
        quarter = usable_memory() // 4
        self._cache_of_several = quarter if cache_mb is None else self.cache_bytes
        self.is_one_vs_rest = is_one_vs_rest

    def fresh(self, kernel: Kernel, cache_bytes: int) -> KernelSolver:
        """Return a solver of two classes with these settings that has learnt nothing."""
        new = LASVMSolver.__new__(LASVMSolver)
        changed = super().fresh(kernel, cache_bytes)
        new.__dict__.update(changed.__dict__, _cache_of_several=cache_bytes)
        return new

    def continuing(self, other: KernelSolver) -> KernelSolver:
        """Return a solver that goes on with what another one of the same settings has learnt."""
        return super().continuing(other).changed(_cache_of_several=self._cache_of_several)

    def new_state(self, sizes: Sizes) -> KernelState:
        """Return an empty state."""
        d, is_sparse = sizes.n_features, sizes.is_sparse
        return new_state(lasvm_state.LASVMState, d, self.cache_bytes, sparse=is_sparse)

    def of_classes(self, n_classes: int) -> KernelSolver:
        """Return this solver, or that of several classes from the third one on."""
        if n_classes < 3:
            return self
        new = PairsSolver.__new__(PairsSolver)
        new.__dict__.update(self.__dict__, cache_bytes=self._cache_of_several)
        if self.state is not None:
            state = classes.from_two(self.state, self.is_one_vs_rest, new.cache_bytes)
            new.state = classes.counting(state, n_classes)
        return new

    def may_be_read(self, state: KernelState) -> bool:
        """Tell whether another thread may read stored rows while `learn` gets `is_read`.

        A budget replaces rows, and sparse rows that are removed become empty at once.
        """
        return isinstance(state.store, DenseStore) and not isinstance(self.schedule.bounds, Budget)

    def set_costs(self, costs: np.ndarray, n_features: int) -> None:
        """Set the C_i of all examples, given those of the two classes."""
        kernel = self.bound_kernel(self.state)
        lasvm_state.set_costs(self.state, kernel, costs[0], costs[1], n_features)

    def remove(self, slots: np.ndarray, n_features: int) -> None:
        """Remove the examples in some slots; their coefficients are given to others."""
        kernel = self.bound_kernel(self.state)
        for s in slots.tolist():
            lasvm_bounds.remove(self.state, kernel, s, n_features)
        lasvm_state.squeeze(self.state)

    def improve_some(self, n_features: int, allowed: float) -> tuple[bool, float, int]:
        """See `ReservingSolver`: pairs of the largest gain, as hard problems need fewer of them."""
        # Its steps keep to no bounds: without them the same machine code serves all.
        schedule = self.schedule._replace(second_order=1.0, bounds=UNBOUNDED)
        given = self.state, self.bound_kernel(self.state), schedule, n_features, _FINISH_STEPS
        is_over, delta = self.finishing.finish_some(*given), self.delta
        return delta <= schedule.tau, delta, 0 if is_over else _FINISH_STEPS

    # The reserve

    def violations(self, numbers: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Return by how much examples with these f(x), without b, would violate optimality."""
        info = self.state.info[0]
        if info.i < 0 or info.j < 0:
            return np.zeros(len(f))
        g = sides_of(numbers) - f
        return np.where(numbers > 0.0, g - info.g_min, info.g_max - g)

    def add_rows(self, rows: tuple[Rows, ...]) -> None:
        """See `ReservingSolver`; several classes need the problems of each row, too."""
        done, n = 0, len(rows[1])
        while done < n:
            some = (cut(rows[0], done, n), *(part[done:] for part in rows[1:]))
            done += self.finishing.add_rows(self.state, *some)
            if done < n:
                self.make_room()

    def least_margins(self, numbers: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return y f(x) of rows."""
        return sides_of(numbers) * margins

    def least_margin(self, number: float, margins: np.ndarray) -> float:
        """Return y f(x) of one event."""
        margin: float = margins.item(-1)
        return margin if number > 0.0 else -margin

    # Inspection, by NumPy: it is fast enough for what is asked now and then, and is not compiled

    def coefficients(self, n: int) -> np.ndarray:
        """Return the coefficients of the slots in use; of several classes (n, problems)."""
        return np.asarray(self.state.alpha[:n])

    @property
    def biases(self) -> list[float]:
        """The constant b of the decision function, or of that of each problem."""
        if self.state is None:
            return []
        info = self.state.info[0]
        if info.i >= 0 and info.j >= 0:
            return [float(0.5 * (info.g_max + info.g_min))]
        return [float(info.g_max if info.i >= 0 else info.g_min if info.j >= 0 else 0.0)]

    @property
    def delta(self) -> float:
        """The gradient gap of the worst pair."""
        if self.state is None:
            return 0.0
        info = self.state.info[0]
        return float(info.g_max - info.g_min) if info.i >= 0 and info.j >= 0 else 0.0

    def kept_gap(self, n_features: int) -> KeptGap:
        """Return the gap on the examples kept, not normalised."""
        return lasvm_gap(self.state, self.biases[0])

    def at_bound(self) -> np.ndarray:
        """Return whether each support vector is at its upper bound C_i, in some problem."""
        state = self.state
        is_at_bound = (state.alpha == state.lower) | (state.alpha == state.upper)
        return np.asarray(is_at_bound[state.alpha != 0.0])

    def mend_gradients(self, x: Rows, rows: Rows, at: np.ndarray, coefficients: np.ndarray) -> bool:
        """Tell whether the gradients of the rows in the slots `at` are right."""
        state, f = self.state, np.zeros(len(at))
        if not loaded.are_extremes(state.info, state.gradient):
            lasvm_state.refresh_extremes(state)
        self.write_margins(state, rows, f)
        wanted = state.y[at] - (f - self.biases[0])
        return loaded.is_close(wanted, state.gradient[at], coefficients, state.diagonal)


class PairsSolver(LASVMSolver):
    """LASVM for several classes: a problem for each pair of them, or each class and the rest."""

    step, states = pairs, pairs_finish
    has_problems = True
    revisits = RevisitsOfClasses
    finishing = pairs_finish

    def new_state(self, sizes: Sizes) -> pairs_state.PairsState:
        """Return an empty state."""
        d, k, is_sparse = sizes.n_features, sizes.n_classes, sizes.is_sparse
        return new_state(pairs_state.PairsState, d, sparse=is_sparse, classes=k)

    def new_margins(self, outputs: Outputs, n: int, has_scores: bool) -> np.ndarray:
        """Return an array for what it writes of n rows: without scores the least margin only."""
        return super().new_margins(outputs, n, has_scores) if has_scores else np.zeros((n, 1))

    def of_classes(self, n_classes: int) -> KernelSolver:
        """Return this solver, which counts these: `state_for` adds the problems of further ones."""
        state = self.state
        return self if state is None else self.changed(state=classes.counting(state, n_classes))

    def has_classes(self, n_classes: int) -> bool:
        """Tell whether the state, if there is one, is of so many classes."""
        return self.state is None or bool(self.state.info[0].n_classes >= n_classes)

    def state_for(self, sizes: Sizes) -> pairs_state.PairsState:
        """Return the state, created or grown to hold so many features and classes."""
        state: pairs_state.PairsState = super().state_for(sizes)
        if state.info[0].n_classes < sizes.n_classes:
            kernel, d = self.bound_kernel(state), sizes.n_known
            state = self.state = classes.with_classes(
                state, kernel, sizes.n_classes, self.is_one_vs_rest, self.cache_bytes, d
            )
        return state

    def grow(self, n_slots: int, n_features: int) -> None:
        """Make room for so many slots and features, or for more members of the problems."""
        store = self.state.store
        if n_slots > store.entered.size or stores.wants_pairs(store):
            self.state = classes.grown(self.state, self.cache_bytes)
        else:
            super().grow(n_slots, n_features)

    def may_be_shared(self, d: int) -> bool:
        """Tell whether threads may compute the kernel values: where the solver leaves none out."""
        return not may_leave_out(self.state, d)

    def set_costs(self, costs: np.ndarray, n_features: int) -> None:
        """Set the C_i of all examples, given those of each class."""
        pairs_finish.set_costs(self.state, self.bound_kernel(self.state), costs, n_features)

    def remove(self, slots: np.ndarray, n_features: int) -> None:
        """Remove the examples in some slots from all problems."""
        kernel = self.bound_kernel(self.state)
        for s in slots.tolist():
            pairs_bounds.forget(self.state, kernel, s, n_features)
        pairs_state.squeeze(self.state)

    def problem_margins(self, x: Rows, sizes: Sizes) -> np.ndarray:
        """Return the margins of rows in each problem, float64 (n, problems)."""
        state = self.state_for(sizes)
        out = np.zeros((shape(x)[0], len(state.problems.table)))
        pairs.problem_margins_of(state, self.bound_kernel(state), x, out)
        return out

    def calibrated(self, x: Rows, numbers: np.ndarray, sizes: Sizes) -> KernelSolver:
        """Return a solver whose problems are calibrated by the margins of rows of these classes."""
        of = self.state.problems
        calibration, margins = np.empty_like(of.calibration), self.problem_margins(x, sizes)
        for p, (positive, negative) in enumerate(of.segments[["positive", "negative"]].tolist()):
            own = np.flatnonzero((numbers == positive) | (numbers == negative) | (negative == REST))
            calibration[p] = new_calibration()
            side = np.where(numbers[own] == positive, 1.0, 0.0)
            update_calibration(calibration[p], np.ascontiguousarray(margins[own, p]), side)
        problems = of._replace(calibration=calibration)
        return self.changed(state=self.state._replace(problems=problems))

    def as_file(self) -> Content:
        """Return reserve and problems."""
        content, arrays = super().as_file()
        return content, arrays | ({} if self.state is None else files.to_arrays(self.state))

    def read(self, content: Json, arrays: NamedArrays, d: int, k: int) -> None:
        """Set what `as_file` returned."""
        super().read(content, arrays, d, k)
        if self.state is not None:
            if self.state.info[0].n_classes > k:
                raise ValueError("there are problems of more classes than labels")
            given = arrays, self.is_one_vs_rest, self.cache_bytes, d
            self.state = files.with_arrays(self.state, *given)

    @property
    def n_members(self) -> int:
        """Number of members of all problems."""
        table = self.state.problems.table
        return int((table["n"] - table["n_dead"]).sum())

    # The reserve

    def least_margins(self, numbers: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the least margin of the row's class, which is in the last column."""
        return margins[:, -1]

    def least_margin(self, number: float, margins: np.ndarray) -> float:
        """Return the same for one event."""
        return margins.item(-1)

    # Inspection: over all problems

    def labels_of(self, seen: list[Label]) -> list[tuple[Label, Label | None]]:
        """Return the positive and the negative label of each problem, None for all other labels."""
        if self.state is None:
            return []
        sides = self.state.problems.segments[["positive", "negative"]].tolist()
        return [(seen[a], None if b == REST else seen[b]) for a, b in sides]

    def coefficients(self, n: int) -> np.ndarray:
        """Return the coefficients of the slots in use, float64 (n, problems)."""
        of, found = self.state.problems, np.zeros((n, len(self.state.problems.table)))
        at, owner = members_of(of), np.repeat(np.arange(len(of.table)), of.table["n"])
        nonzero = of.alpha[at] != 0.0
        found[of.slot[at[nonzero]], owner[nonzero]] = of.alpha[at[nonzero]]
        return found

    @property
    def n_support_vectors(self) -> int:
        """Number of examples with a nonzero coefficient in some problem."""
        if self.state is None:
            return 0
        of, at = self.state.problems, members_of(self.state.problems)
        return len(np.unique(of.slot[at[of.alpha[at] != 0.0]]))

    @property
    def dual(self) -> float:
        """The value of the dual objective, summed over the problems."""
        return float(self.state.problems.table["dual"].sum())

    def squared_norm(self, n_features: int) -> float:
        """Return the square of |w|, summed over the problems."""
        of = self.state.problems
        return max(0.0, 2.0 * (float(np.abs(of.alpha[members_of(of)]).sum()) - self.dual))

    @property
    def biases(self) -> list[float]:
        """The constant b of each problem."""
        if self.state is None:
            return []
        table = self.state.problems.table
        low, high = table["g_min"], table["g_max"]
        has_low, has_high = table["j"] >= 0, table["i"] >= 0
        one = np.where(has_high, high, np.where(has_low, low, 0.0))
        both = has_low & has_high
        mean = 0.5 * (np.where(both, low, 0) + np.where(both, high, 0))
        return np.where(both, mean, one).tolist()

    @property
    def delta(self) -> float:
        """The gradient gap of the worst pair of all problems."""
        if self.state is None:
            return 0.0
        table = self.state.problems.table
        both = table[(table["i"] >= 0) & (table["j"] >= 0)]
        return float((both["g_max"] - both["g_min"]).max(initial=0.0))

    def kept_gap(self, n_features: int) -> KeptGap:
        """Return the gap on the examples kept, summed over the problems."""
        of, total, cost = self.state.problems, 0.0, 0.0
        for p, bias in enumerate(self.biases):
            start, found = int(of.segments[p].start), of._asdict()
            own = slice(start, start + int(of.table[p].n))
            arrays = {name: found[name][own] for name in _OF_GAP}
            gap = lasvm_gap(SimpleNamespace(info=of.table[p : p + 1], **arrays), bias)
            total, cost = total + gap.total, cost + gap.cost
        return KeptGap(total, cost)

    def at_bound(self) -> np.ndarray:
        """Return whether each support vector is at its upper bound C_i in some problem."""
        of, at = self.state.problems, members_of(self.state.problems)
        at = at[of.alpha[at] != 0.0]
        is_at_bound = (of.alpha[at] == of.lower[at]) | (of.alpha[at] == of.upper[at])
        return np.isin(np.unique(of.slot[at]), of.slot[at[is_at_bound]])

    def mend_gradients(self, x: Rows, rows: Rows, at: np.ndarray, coefficients: np.ndarray) -> bool:
        """Tell whether the gradients of the rows in the slots `at` are right in all problems."""
        state, of = self.state, self.state.problems
        members, owner = members_of(of), np.repeat(np.arange(len(of.table)), of.table["n"])
        starts = of.segments["start"].tolist()
        if not all(
            loaded.are_extremes(of.table[p : p + 1], of.gradient[start:])
            for p, start in enumerate(starts)
        ):
            return False
        f = np.zeros((len(at), len(of.table)))
        pairs.problem_margins_of(state, self.bound_kernel(state), rows, f)
        f -= np.array(self.biases)
        place = np.full(int(state.info[0].n), -1)
        place[at] = np.arange(len(at))
        asked = (place[of.slot[members]] >= 0) & (of.lower[members] != of.upper[members])
        members, owner = members[asked], owner[asked]
        wanted = of.y[members] - f[place[of.slot[members]], owner]
        return loaded.is_close(wanted, of.gradient[members], of.alpha, state.diagonal)

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of each part, without space for growth that was never written."""
        parts = super().memory_parts
        if self.state is not None:
            of_members, of_values = layout.unused_bytes(self.state.problems)
            values = self.state.problems.values.nbytes
            parts["support_vectors"] -= values + of_members
            parts["cache"] += values - of_values
        return parts

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example, over all problems."""
        if self.state is None:
            return super().counters
        of, fields = self.state.problems, {"steps": "n_steps", "null_steps": "n_null"}
        steps = {name: int(of.table[field].sum()) for name, field in fields.items()}
        return steps | self._counts_of_values(of.counts)
