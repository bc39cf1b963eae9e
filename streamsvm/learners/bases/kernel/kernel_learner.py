"""The base class of kernel learners: a kernel model with names, labels and class weights."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import check_size
from streamsvm.features.names import Name
from streamsvm.features.schema import LIMIT
from streamsvm.labels.class_labels import ClassWeight
from streamsvm.learners.bases import words
from streamsvm.learners.bases.kernel.availability import of_dual, of_keepers, of_primal
from streamsvm.learners.bases.kernel.parameters import KernelParameters
from streamsvm.learners.bases.kernel.remains import Remains, Traces, checked_ids
from streamsvm.learners.bases.kernel.support_vectors import vectors_of
from streamsvm.learners.bases.kernel.unlearning import Unlearned, parts_without
from streamsvm.learners.bases.learner import Learner
from streamsvm.models.kernel import threads
from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.models.kernel.kernel_solver import KernelSolver
from streamsvm.models.kernel.preparation import Preparation
from streamsvm.models.model import Kernel
from streamsvm.monitor.certificate import Certificate, Looks
from streamsvm.solvers.gap import KeptGap
from streamsvm.support import density
from streamsvm.support.interruptions import Changes, change_together
from streamsvm.support.locked import guarded, locked
from streamsvm.support.rows import Rows

IDS_AND_WINDOW = "a window holds the last examples, whatever they are; leave one out"
"""Why rows with ids are refused."""


class KernelLearner(Learner):
    """A classifier whose decision function is a kernel expansion.

    Parameters
    ----------
    solver
        What it learns with.
    kernel
        The kernel; None: an RBF whose gamma follows the data.
    given, C, class_weight, scale, gamma
        As in `LASVMClassifier`.

    Attributes
    ----------
    model, targets
        What it learns with; labels and calibration.

    """

    gives_back = False
    """Whether examples can be taken back from it."""

    model: KernelModel
    max_support_vectors: int | None = None
    """The most support vectors, of those that have such a bound; None: any number."""

    def __init__(
        self,
        solver: KernelSolver,
        kernel: Kernel | None,
        given: KernelParameters,
        *,
        C: float | str = 1.0,
        class_weight: ClassWeight | str | None = None,
        scale: bool | str = False,
        gamma: str = "scale",
    ) -> None:
        if kernel is not None:
            kernels.check_kernel(kernel)
        limit = check_size("max_features", given.max_features) or LIMIT
        model = KernelModel(
            solver,
            self.new_targets.new_outputs,
            Preparation(kernel, C, scale, gamma),
            sparse=given.sparse,
            is_sparse=density.check_sparse(given.sparse, given.hashing),
            limit=limit,
            n_threads=threads.check_n_jobs(given.n_jobs),
        )
        super().__init__(model, limit, check_size("hashing", given.hashing), given.missing)
        self.sparse, self.hashing, self.max_features = given[:3]
        self.cache_mb, self.n_jobs = given.cache_mb, given.n_jobs
        self.kernel, self.C = kernel, C
        self.class_weight, self.scale, self.gamma = class_weight, scale, gamma
        self.choose_by(given.selection)

    # What it learns with

    @property
    def solver(self) -> Any:
        """The solver of the model."""
        return self.model.solver

    @property
    def cache_limit(self) -> int:
        """The bytes that cached kernel rows may take at most."""
        return self.model.solver.cache_bytes

    @property
    def preparation(self) -> Preparation:
        """Scale and width of the model."""
        return self.model.preparation

    @property
    def kernel_(self) -> Any:
        """The kernel in use."""
        return self.model.kernel

    @property
    def C_(self) -> float:  # noqa: N802
        """The C in use."""
        return self.model.C

    def costs_now(self, classes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the C_i that examples of classes, given by number, would have now."""
        return self.model.costs_now(classes, weights)

    # What can be asked without learning

    @property
    def description(self) -> str:
        """The parameters in use that matter most: kernel, C, class weights."""
        choice = "" if self.preparation.choice is None else f" ({self.chosen})"
        return f"{self.kernel_!r}, C={self.C_:g}{self._weights_in_words}{choice}"

    @property
    def chosen(self) -> str | None:
        """Scale, gamma and C in words, and of how many they were the best; None: no trial yet."""
        chosen = self.model.chosen
        return None if chosen is None else chosen + words.deciding(self.relevance)

    @property
    @locked
    def relevance(self) -> dict[Name, float] | None:
        """How much each feature weighs in squared distances of rows, those that weigh most first.

        Of features that are scaled, shares of which the sum is 1, learnt from the first 1,024
        examples (see the page "Scale and width"). None: all weigh the same.
        """
        return words.relevance_of(self.model.preparation.relevance, self.schema.names)

    @property
    @locked
    def n_support_vectors(self) -> int:
        """Number of examples with a nonzero coefficient."""
        return self.model.solver.n_support_vectors

    @locked
    def support_vectors(self) -> Any:
        """Return the support vectors, in the order in which they entered the model.

        Returns
        -------
        Copies of rows, coefficients, labels and example numbers: `SupportVectors` for two classes,
        `ProblemVectors` or `SupportPatterns` for more.

        """
        return vectors_of(self.model, self.schema, self.targets)

    @property
    def _bias(self) -> float:
        """The constant b of the decision function; 0 before the first example, or without one."""
        biases = self.model.solver.biases
        return self.targets.direction * biases[0] if biases else 0.0

    @property
    def kappa(self) -> float:
        """The share of operations that changed nothing; 0 before the first operation."""
        return self.model.kappa

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example: steps, kernel values, hits and misses of the cache.

        ``indefinite_kernel``, if it is there: how often a kernel of your own was found not to be
        positive definite, as an SVM needs, since the model was made or loaded.
        """
        return self.model.counters | self._ignored()

    @property
    def certificate(self) -> Certificate:
        """A bound on the mean gap, or None and the reason why there is none."""
        return Certificate(None, self.solver.no_certificate)

    @property
    @locked
    def squared_norm(self) -> float:
        """The square of |w|; of several classes, the sum over the problems or classes."""
        return self.model.squared_norm

    @of_primal
    def objective_of(self, x: Rows, classes: np.ndarray, weights: np.ndarray) -> float:
        """Return the regularisation, where there is one, plus the mean hinge loss over rows.

        `classes` and `weights` are those of the n rows, which are over the features seen.
        """
        return self.model.objective_of(x, classes, weights)

    def _facts(self) -> dict[str, object]:
        facts = super()._facts() | {"support vectors": self.n_support_vectors}
        if self.has_dual:
            facts |= {"dual objective": self.dual, "duality gap": self.duality_gap()}
        return facts

    # Of learners with a dual, others have no such methods

    @property
    def looks(self) -> Looks:
        """The sums of looks so far, which estimate and bound the mean gap; none without a dual."""
        return self.model.solver.looks

    @property
    @locked
    def dual(self) -> float:
        """The value of the dual objective; of several classes, the sum over the problems."""
        if not self.has_dual:
            raise AttributeError(f"{type(self).__name__} has no dual")
        return self.model.dual

    @of_dual
    def kept_gap(self) -> KeptGap:
        """Return the measured duality gap on the examples kept, summed over the problems.

        It is not normalised. The learner has learnt an example.
        """
        return self.model.kept_gap()

    @of_dual
    def duality_gap(self) -> float:
        """Return the measured duality gap, divided by the sum of the C_i.

        It is that of the model that predicts, with its bias, on the examples kept and those of the
        reserve (of more than 2,000, so many drawn at random stand for all). The gap bounds how far
        primal and dual are from their common optimum.

        Returns
        -------
        The normalised gap; 0 before the first example.

        """
        return self.model.duality_gap()

    @of_dual
    def kept_numbers(self) -> np.ndarray:
        """Return the numbers of the examples kept.

        Returns
        -------
        int64 (n_kept,): counted from 1, or the ids given.

        """
        return self.model.kept_numbers()

    @of_dual
    def at_bound(self) -> np.ndarray:
        """Return whether each support vector is at its upper bound C_i, in some problem at least.

        Returns
        -------
        bool, one value for each nonzero coefficient. The learner has learnt an example.

        """
        return self.model.dual_solver().at_bound()

    @of_dual
    def reserve_sample(
        self, n: int, n_before: int, draws: random.Random
    ) -> tuple[Rows, np.ndarray, np.ndarray, np.ndarray] | None:
        """Return rows of the reserve that are not kept now: see `KernelModel.reserve_sample`."""
        return self.model.reserve_sample(n, n_before, draws)

    # Taking examples back, and what still depends on them

    @of_keepers
    def unlearn(self, ids: Iterable[int] | int) -> Unlearned:
        """Take examples back: the model goes on as one that is trained on the others.

        Coefficients, rows, cached kernel rows, the reserve, waiting candidates and feature names
        that no other example has are removed; then the learner finishes. See the page "Forgetting"
        for what stays, as averages of many examples. Other threads may predict meanwhile. Ctrl-C
        before the first step of finishing leaves the model as it was; after that the examples are
        gone, and the model can be used.

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
        found = self._remove(wanted)
        # Learners that do not finish do not have this method.
        if len(found) and self.state is not None:
            cast(Any, self).finish()
        missing = wanted[~np.isin(wanted, found)]
        return Unlearned(found.tolist(), missing.tolist(), self.duality_gap())

    @of_keepers
    def audit(self, ids: Iterable[int] | int) -> dict[int, Remains]:
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
        return self._remains(wanted)

    @of_keepers
    def keeps(self, ids: np.ndarray) -> np.ndarray:
        """Return of which ids, int64 (n,), `unlearn` would remove something; bool (n,)."""
        with self.lock:
            return self._traces().keeps(ids)

    @guarded
    def _remains(self, wanted: np.ndarray) -> dict[int, Remains]:
        return self._traces().remains(wanted)

    @guarded
    def _remove(self, wanted: np.ndarray) -> np.ndarray:
        """Remove what is kept of examples; return their ids."""
        traces = self._traces()
        own = traces.kept_of(wanted)
        found = own.ids
        if not found.size:
            self.solver.drop_numbers()
            if self.observer is not None:
                # Its sample is of examples that the learner has left out, and does not know.
                change_together([self.observer.without(wanted, None)])
            return found
        d, gone = len(self.schema), traces.dropped(found)
        columns = np.setdiff1d(np.arange(d), gone) if gone.size else None
        of_face, of_model = parts_without(traces, own, columns, self.model.sizes(d))
        of_model |= {"costs": self.model.costs.without(own.classes)}
        of_face["event_path"] = None
        changes: list[Changes] = [(self.__dict__, of_face), (self.model.__dict__, of_model)]
        if self.observer is not None:
            changes.append(self.observer.without(wanted, columns))
        change_together(changes)
        return found

    def _traces(self) -> Traces:
        return Traces(
            solver=self.model.dual_solver(),
            preparation=self.preparation,
            targets=self.targets,
            schema=self.schema,
            waiting=self.waiting,
            n_examples=self.n_examples,
            is_sparse=self.is_sparse,
            is_bounded=self.max_support_vectors is not None,
        )
