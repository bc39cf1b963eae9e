"""The solver of a kernel model: compiled functions, the state that they change, the kernel."""

from __future__ import annotations

import abc
import copy
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import check_number
from streamsvm.model_files.json_values import Content, Json
from streamsvm.models.kernel.reserve import FACTS, Reserve
from streamsvm.models.model import Kernel
from streamsvm.models.outputs import Outputs
from streamsvm.models.rows import rescale
from streamsvm.monitor.certificate import Looks
from streamsvm.solvers.bounds import MERGE, MERGE_MEAN, UNBOUNDED, Budget, Window
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.one_event import margins_of
from streamsvm.support import states, stores
from streamsvm.support.declaration import NamedArrays
from streamsvm.support.dense_store import RowStore
from streamsvm.support.interruptions import Replaceable, append_result
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.kernel_rows.fresh_block import ALL_KNOWN, FreshBlock
from streamsvm.support.rows import Columns, Rows
from streamsvm.support.states import only_kept
from streamsvm.support.stores import Store

_CACHED = ("cached_rows_hit", "cached_rows_missed", "cached_rows_extended")
_OF_VALUES = ("kernel_values", *_CACHED)


def merging_by(kernel: Kernel | None) -> float:
    """Return the policy by which solvers merge two vectors; the kernel None is an RBF."""
    return MERGE if kernel is None or isinstance(kernel, kernels.RBF) else MERGE_MEAN


class Sizes(NamedTuple):
    """What a state must have room for."""

    n_features: int
    n_known: int  # features of the rows kept
    limit: int  # of features
    n_classes: int
    is_sparse: bool


class KernelState(Protocol):
    """What a kernel solver has learnt: a NamedTuple of arrays, declared by `states.declare`."""

    @property
    def store(self) -> Store | RowStore:
        """The rows, by slot."""

    @property
    def info(self) -> np.recarray:
        """Counts and other numbers, one record."""


class ScratchState(KernelState, Protocol):
    """A state with scratch for the kernel values of fresh rows."""

    @property
    def block(self) -> np.ndarray | FreshBlock:
        """The values, or a block that has them."""

    def _replace(self, **values: Any) -> Self: ...


class KernelSolver(Replaceable, abc.ABC):
    """An algorithm whose decision function is a kernel expansion.

    A slot is a position in the arrays of the state that holds one example. The kernel None is an
    RBF whose gamma the model chooses. `schedule`, that of the steps as compiled code takes it, is
    replaced when a parameter changes. `state` is None before the first example; `kept_rows` are
    rows that it passed by, for `finish`, None if it keeps none.
    """

    step: ModuleType
    """The module with `learn_rows` and `margins_of`."""

    states: ModuleType
    """The module with `rebuild`."""

    has_cache = True
    """Whether kernel values are computed, and kept."""
    more_counts: ClassVar[dict[str, str]] = {}
    """Further counters: {name: the field of `info` that holds it}."""

    no_certificate: ClassVar[str] = ""
    """Why there is no bound of the gap, if there is none."""

    kept_rows: Reserve | None = None

    loss_margin = 1.0
    """Margins of at least this have no loss."""

    has_problems = False
    """Whether its state has binary problems of several classes."""

    is_told_classes = False
    """Whether it is slow to add a class midway, so that copies are told of all first."""

    seed: int | None = None
    """Of its draws; None: others each time, if it draws."""

    draws = np.zeros(0, np.uint64)
    """uint64 (1,): the state of the random numbers, shared with `state`; (0,) without."""

    regularisation = 0.0
    """The factor of |w|^2 / 2 in the objective; 0 if none is minimised, or for a dual solver."""

    def __init__(self, kernel: Kernel | None, schedule: Any, cache_mb: float) -> None:
        self.kernel: Kernel = kernels.RBF(gamma=1.0) if kernel is None else kernel
        self.schedule = schedule
        self.cache_bytes = int(check_number("cache_mb", cache_mb, 0) * 1e6)
        self.state: Any = None

    @abc.abstractmethod
    def new_state(self, sizes: Sizes) -> KernelState:
        """Return an empty state."""

    @abc.abstractmethod
    def coefficients(self, n: int) -> np.ndarray:
        """Return the coefficients of the n slots in use; of several classes (n, columns)."""

    def new_margins(self, outputs: Outputs, n: int, has_scores: bool) -> np.ndarray:
        """Return an array for what it writes of n rows when it learns them.

        Without `has_scores` it may lack what takes longer than learning.
        """
        return outputs.zeros(n)

    def of_classes(self, n_classes: int) -> KernelSolver:
        """Return the solver for so many classes."""
        return self

    def has_classes(self, n_classes: int) -> bool:
        """Tell whether the state, if there is one, is of so many classes."""
        return True

    def fresh(self, kernel: Kernel, cache_bytes: int) -> KernelSolver:
        """Return a solver with these settings, but for the kernel, that has learnt nothing."""
        return self.changed(kernel=kernel, cache_bytes=cache_bytes, state=None)

    def continuing(self, other: KernelSolver) -> KernelSolver:
        """Return a solver that goes on with what another one of the same settings has learnt."""
        return other.changed(schedule=self.schedule, cache_bytes=self.cache_bytes)

    def set_costs(self, costs: np.ndarray, n_features: int) -> None:
        """Set the C_i of all examples, given those of each class: if these may be balanced."""
        raise AssertionError("there are no balanced weights")

    def _apart(self, **attributes: object) -> Self:
        """Return a solver with other attributes, a state of its own, and no cached rows."""
        # As a whole: the draws of a solver are those of its state.
        new = copy.deepcopy(self.without_cache(), {id(self.kept_rows): self.kept_rows})
        new.restore_cache()
        if new.state is not None and "cache" in new.state._fields:
            new.state.cache.counts[:] = self.state.cache.counts
        return new.changed(**attributes)

    def with_kernel(self, kernel: Kernel, n_features: int) -> Self:
        """Return a solver with another kernel; this one is not changed."""
        new = self._apart(kernel=kernel)
        new.rebuild(n_features)
        return new

    def with_rows_scaled(self, ratio: np.ndarray, n_features: int) -> Self:
        """Return a solver whose features, of dense rows, are multiplied by a ratio; as above."""
        kept = None if self.kept_rows is None else self.kept_rows.rescaled(ratio)
        new = self._apart(kept_rows=kept)
        if new.state is not None:
            rescale(new.state.store, ratio)
            new.rebuild(n_features)
        return new

    def remove(self, slots: np.ndarray, n_features: int) -> None:
        """Remove the examples in some slots, as a bound does: what the dual loses is in `lost`."""
        raise AssertionError("it cannot take examples back")

    def classes_of(self, slots: np.ndarray) -> np.ndarray:
        """Return the numbers of the classes of the examples in some slots, float64."""
        # A solver of two classes has -1 and +1.
        return np.maximum(0.0, np.asarray(self.state.y, np.float64)[slots])

    def drop_numbers(self) -> None:
        """Forget numbers of examples that are not kept: none are known, unless a subclass says."""

    def without(self, slots: np.ndarray, columns: Columns, n_features: int) -> Self:
        """Return a solver without the examples in some slots; this one is not changed.

        It has some columns only, which are those of the rows that it keeps, and no cached rows.
        """
        new = self._apart()
        new.remove(slots, n_features)
        new.state = only_kept(new.state, columns, self.cache_bytes)
        if columns is not None and kernels.product_of(type(self.kernel)) == "vectors":
            new.rebuild(len(columns))
        return new

    # Compiled code

    def bound_kernel(self, state: KernelState) -> Any:
        """Return the kernel in the form that compiled functions take."""
        return bound(self.kernel, state.store)

    def may_be_shared(self, d: int) -> bool:
        """Tell whether threads may compute the kernel values of d features of rows to learn."""
        return True

    def may_be_read(self, state: KernelState) -> bool:
        """Tell whether another thread may read stored rows while `learn` gets `is_read`."""
        return False

    def learn(
        self,
        rows: tuple[Rows, ...],
        margins: np.ndarray,
        counts: list[int],
        values: np.ndarray | None = None,
        is_read: bool = False,
    ) -> None:
        """Learn (x, y, C_i, weight, numbers, diagonal); append how many fitted into the state.

        `values` are kernel values of x, if they are not in the scratch of the state. With `is_read`
        no stored row is moved or replaced: fewer rows are learnt if one should be.
        """
        state, schedule = self.state, self.schedule
        if values is not None:
            state = _with_values(state, values)
        if is_read and "is_read" in schedule._fields:
            schedule = schedule._replace(is_read=1.0)
        call = (state, self.bound_kernel(state), *rows, schedule, margins)
        append_result(counts, self.step.learn_rows, call)

    def write_margins(self, state: KernelState, x: Rows, out: np.ndarray) -> None:
        """Write the margins of rows into `out`; each thread passes a state with its own scratch."""
        self.write_margins_by(self.schedule, state, x, out)

    def write_margins_by(self, schedule: Any, state: KernelState, x: Rows, out: np.ndarray) -> None:
        """Write the margins of rows into `out` that another schedule says."""
        if "bounds" in schedule._fields:
            # They do not matter here: the function is compiled once for all of them.
            schedule = schedule._replace(bounds=UNBOUNDED)
        margins_of(state, self.bound_kernel(state), schedule, x, out)

    def margins_by_values(
        self, state: ScratchState, x: Rows, out: np.ndarray, values: np.ndarray
    ) -> None:
        """Write the margins of rows into `out`, given their kernel values with all slots."""
        info = state.info.copy()
        info["ready"] = ALL_KNOWN
        self.write_margins(_with_values(state, values)._replace(info=info), x, out)

    def rebuild(self, n_features: int) -> None:
        """Compute anew what depends on the kernel."""
        if self.state is not None:
            self.states.rebuild(self.state, self.bound_kernel(self.state), n_features)

    # Room

    def state_for(self, sizes: Sizes) -> Any:
        """Return the state, created or grown to hold so many features and classes."""
        if self.state is None:
            self.state = self.new_state(sizes)
        elif (n := states.n_columns(self.state)) < sizes.n_features:
            room = min(max(sizes.n_features, 2 * n), max(sizes.n_features, sizes.limit))
            self.grow(self.state.store.entered.size, room)
            if kernels.product_of(type(self.kernel)) == "vectors":
                self.rebuild(sizes.n_known)
        return self.state

    def grow(self, n_slots: int, n_features: int) -> None:
        """Make room for so many slots and features."""
        self.state = states.grown(self.state, n_slots, n_features, self.cache_bytes)

    def make_room(self) -> None:
        """Make room for more slots, or for more values of sparse rows, whichever is short."""
        capacity = self.state.store.entered.size
        twice = 1 if stores.wants_pairs(self.state.store) else 2
        self.grow(twice * capacity, states.n_columns(self.state))

    def grow_for(self, n_slots: int, sizes: Sizes) -> None:
        """Make room for so many slots, if there is less, and for `sizes`."""
        self.state_for(sizes)
        if n_slots > self.state.store.entered.size:
            self.grow(n_slots, states.n_columns(self.state))

    def made_sparse(self) -> Self:
        """Return a solver that stores rows as their nonzero features; this one is not changed."""
        if self.state is None:
            return self
        return self.changed(state=states.made_sparse(self.state, self.cache_bytes))

    # Inspection

    def expansion(self, n_features: int) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Return rows, coefficients and example numbers of the slots in use."""
        n, store = states.n_slots(self.state), self.state.store
        return stores.rows_of(store, n, n_features), self.coefficients(n), store.entered[:n]

    @property
    def biases(self) -> list[float]:
        """The constants of the decision function, one for each problem; none without a bias."""
        return []

    @property
    def delta(self) -> float:
        """The gradient gap of the worst pair, if it chooses pairs."""
        return 0.0

    @property
    def looks(self) -> Looks:
        """The sums of looks so far, which estimate and bound the mean gap; none without a dual."""
        return Looks()

    def calibrated(self, x: Rows, numbers: np.ndarray, sizes: Sizes) -> KernelSolver | None:
        """Return a solver calibrated by the margins of rows; None: it calibrates no margins."""
        return None

    has_norm = False
    """Whether it has `squared_norm`."""

    def squared_norm(self, n_features: int) -> float:
        """Return the square of |w|."""
        raise AttributeError(f"{type(self).__name__} has no norm")

    @property
    def n_support_vectors(self) -> int:
        """Number of examples with a nonzero coefficient."""
        return 0 if self.state is None else int(np.count_nonzero(self.state.alpha))

    @property
    def n_vectors(self) -> int:
        """Number of examples with a nonzero coefficient, each once."""
        return self.n_support_vectors

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of ``support_vectors``, the kernel row ``cache``, and ``scratch`` arrays."""
        return states.memory_parts(self.state)

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example: steps, kernel values, hits and misses of the cache."""
        fields = {"steps": "n_steps", "null_steps": "n_null"} | self.more_counts
        if self.state is None:
            return dict.fromkeys((*fields, *(_OF_VALUES if self.has_cache else ())), 0)
        info = self.state.info[0]
        counts = {name: int(info[field]) for name, field in fields.items()}
        return counts | (self._counts_of_values(self.state.cache.counts) if self.has_cache else {})

    def _counts_of_values(self, of_cache: np.ndarray) -> dict[str, int]:
        *cached, n_values = of_cache.tolist()
        n_values += int(self.state.info[0].n_values)
        return {"kernel_values": n_values} | dict(zip(_CACHED, cached, strict=True))

    # Of model files

    def as_file(self) -> Content:
        """Return what a file holds of it beside its state: JSON values and arrays."""
        return {}, {}

    def read_draws(self, arrays: NamedArrays) -> tuple[str, ...]:
        """Set draws that it shares with its state; return the names of these fields."""
        return ()

    def read(self, content: Json, arrays: NamedArrays, d: int, k: int) -> None:
        """Set what `as_file` returned, of d features and k classes; the state is set."""

    def sums(self) -> list[tuple[np.ndarray, float]]:
        """Return sums of kernel values that `rebuild` computes, and the size of coefficients."""
        return []

    def mend_gradients(self, x: Rows, rows: Rows, at: np.ndarray, coefficients: np.ndarray) -> bool:
        """Tell whether the gradients of the rows in the slots `at` are right.

        What is cheaper to mend than by `rebuild` is mended; `x` are all rows, with `coefficients`.
        """
        return True

    # Copies

    def without_cache(self) -> Self:
        """Return the solver without cached kernel rows, which are recomputed to the last bit."""
        return self if self.state is None else self.changed(state=states.without_cache(self.state))

    def renew_cache(self, cache_bytes: int) -> None:
        """Forget cached kernel rows, and have room for so many bytes of them from now on."""
        if self.state is not None:
            before = self.state
            self.state = states.with_cache(states.without_cache(before), cache_bytes)
            if "cache" in before._fields:
                self.state.cache.counts[:] = before.cache.counts

    def restore_cache(self) -> None:
        """Add what `without_cache` left out."""
        if self.state is not None:
            self.state = states.with_cache(self.state, self.cache_bytes)


def values_in(state: ScratchState) -> np.ndarray:
    """Return the scratch of a state for kernel values of fresh rows."""
    return state.block if isinstance(state.block, np.ndarray) else state.block.values


def _with_values(state: ScratchState, values: np.ndarray) -> Any:
    """Return a state with kernel values of fresh rows in its scratch, in place of its own."""
    block = state.block
    own = values if isinstance(block, np.ndarray) else block._replace(values=values)
    return state._replace(block=own)


class DualSolver(KernelSolver):
    """A solver whose coefficients are feasible for the dual of an SVM: 0 <= a_i <= C_i.

    What follows the state is only asked after the first example.
    """

    @abc.abstractmethod
    def kept_gap(self, n_features: int) -> KeptGap:
        """Return the measured duality gap on the examples kept, not normalised."""

    @abc.abstractmethod
    def at_bound(self) -> np.ndarray:
        """Return whether each nonzero coefficient is at its upper bound C_i."""

    @property
    def looks(self) -> Looks:
        """The sums of looks so far."""
        return Looks() if self.state is None else Looks.of(self.state.info[0])

    @property
    def covers(self) -> str:
        """What examples the gap is about: "stream", "window" or "merged".

        Coefficients that were made by projecting or merging are no coefficients of examples.
        """
        bounds = self.schedule.bounds
        if isinstance(bounds, Budget):
            return "merged"
        return "window" if isinstance(bounds, Window) else "stream"

    @property
    def dual(self) -> float:
        """The value of the dual objective."""
        return float(self.state.info[0].dual)

    has_norm = True

    def squared_norm(self, n_features: int) -> float:
        """Return the square of |w|."""
        return max(0.0, 2.0 * (float(np.abs(self.state.alpha).sum()) - self.dual))

    def kept_numbers(self) -> np.ndarray:
        """Return the numbers of the examples kept, int64 (n_kept,)."""
        entered = self.state.store.entered[: int(self.state.info[0].n)]
        return np.asarray(entered[entered != 0])


class ReservingSolver(DualSolver):
    """A solver with a reserve, whose rows are scaled as those that it keeps.

    While scale and width are on trial, each candidate fills a reserve of its own, and the model
    goes on with that of the best.
    """

    revisits: ClassVar[type]
    """The class of `Revisits` by which `finish` looks at the rows of the reserve again."""

    kept_rows: Reserve

    def __init__(
        self, kernel: Kernel | None, schedule: Any, cache_mb: float, kept_rows: Reserve
    ) -> None:
        super().__init__(kernel, schedule, cache_mb)
        self.kept_rows = kept_rows

    @abc.abstractmethod
    def violations(self, numbers: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Return by how much examples with these f(x), without b, would violate optimality."""

    def add_rows(self, rows: tuple[Rows, ...]) -> None:
        """Keep examples that are not kept, with coefficient 0.

        `rows` are the arguments of `learn`, f(x) without b, and what else the solver needs.
        """
        raise AssertionError("they are learnt again")

    def fresh(self, kernel: Kernel, cache_bytes: int) -> KernelSolver:
        """Return a solver with these settings, and an empty reserve, that has learnt nothing."""
        reserve = Reserve(self.kept_rows.most, self.kept_rows.window)
        return super().fresh(kernel, cache_bytes).changed(kept_rows=reserve)

    @property
    def n_members(self) -> int:
        """Number of examples kept, of several problems the sum over all."""
        info = self.state.info[0]
        return int(info.n - info.n_dead)

    def as_file(self) -> Content:
        """Return the reserve for model files."""
        return self.kept_rows.as_file()

    def read(self, content: Json, arrays: NamedArrays, d: int, k: int) -> None:
        """Set what `as_file` returned."""
        self.kept_rows.read(content, arrays, d, k)

    @abc.abstractmethod
    def improve_some(self, n_features: int, allowed: float) -> tuple[bool, float, int]:
        """Make some steps on the examples kept, to their optimum.

        Returns whether it is reached, or the gap is `allowed`; the largest error; and the number of
        steps, 0 if none changes a coefficient in double precision.
        """

    @abc.abstractmethod
    def least_margins(self, numbers: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return y f(x) of rows, the least one if there are several problems."""

    @abc.abstractmethod
    def least_margin(self, number: float, margins: np.ndarray) -> float:
        """Return the same for one event, whose margins are (1, 1) or (1, columns)."""

    def note(self, x: Rows, targets: tuple[np.ndarray, ...], seen: int) -> None:
        """Fill the reserve from rows that were just learnt after `seen` examples.

        `targets` are their classes, weights, numbers (0 of rows that are only predicted) and
        margins.
        """
        if self.kept_rows.most == 0:
            return
        classes, weights, numbers, margins = targets
        facts = np.empty(len(classes), FACTS)
        facts["number"], facts["class"], facts["weight"] = numbers, classes, weights
        facts["arrived"] = seen + np.cumsum(numbers > 0)
        facts["margin"] = self.least_margins(classes, margins)
        self.kept_rows.add(x, facts)


def reserving(solver: KernelSolver) -> ReservingSolver:
    """Return a solver that keeps a reserve."""
    assert isinstance(solver, ReservingSolver)
    return solver
