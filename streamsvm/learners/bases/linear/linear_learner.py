"""The base class of linear learners: what is the same for all stochastic gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._parameter_checks import check_size, weights_of
from streamsvm.features import batches, frames
from streamsvm.features.frames import Batch
from streamsvm.features.names import Name
from streamsvm.features.schema import LIMIT
from streamsvm.labels.class_labels import ClassWeight, check_present
from streamsvm.labels.label_column import Label, Labels
from streamsvm.labels.labelled_rows import Weights
from streamsvm.labels.targets import GrowingTargets
from streamsvm.learners.bases.learner import Learner
from streamsvm.models.linear.linear_model import LinearModel
from streamsvm.monitor.certificate import Certificate
from streamsvm.solvers.linear.state import Schedule
from streamsvm.solvers.linear.step import Step
from streamsvm.support import density
from streamsvm.support.locked import guarded
from streamsvm.support.rows import Rows, shape


class LinearLearner(Learner):
    """A classifier with one linear function, or with one for each of several classes.

    Parameters
    ----------
    steps
        Which step is made, by which schedule, and where its second weights begin.
    others
        As in `SVMSGDClassifier`.

    """

    new_targets = GrowingTargets
    chunk = 65_536

    model: LinearModel
    loss: str  # a parameter of all linear learners

    def __init__(
        self,
        steps: tuple[Step, Schedule, float | None],
        t0: float | None,
        class_weight: ClassWeight | None,
        sparse: bool | None,
        hashing: int | None,
        max_features: int,
        missing: str,
        max_classes: int | None,
    ) -> None:
        limit = check_size("max_features", max_features) or LIMIT
        buckets = check_size("hashing", hashing)
        model = LinearModel(
            *steps,
            sparse=sparse,
            is_sparse=density.check_sparse(sparse, hashing),
            finds_rate=t0 is None,
            limit=limit,
            buckets=buckets,
        )
        super().__init__(model, limit, buckets, missing)
        self.limit_classes(max_classes)
        self.t0, self.class_weight = t0, class_weight
        self.sparse, self.hashing, self.max_features = sparse, hashing, max_features

    # What can be asked without learning

    @property
    def description(self) -> str:
        """The parameters in use that matter most: loss, lambda and rate."""
        return f"{self.loss} loss, lambda {self.model.schedule.lam:g}, rate {self.rate:.3g}"

    @property
    def weights(self) -> dict[Name, float] | dict[Label, dict[Name, float]]:
        """{feature: weight}; with more than two classes {label: {feature: weight}}."""
        with self.lock:
            names = self.feature_names if self.hashing is None else list(range(self.hashing))
            rows = self.model.predicting_weights()[:, : len(names)]
            rows = (self.targets.direction * rows).tolist()
            return self._by_label([dict(zip(names, row, strict=True)) for row in rows], {})

    @property
    def intercept(self) -> float | dict[Label, float]:
        """The bias; with more than two classes {label: bias}."""
        turn = self.targets.direction
        return self._by_label([turn * bias for bias in self.model.biases()], 0.0)

    def _by_label(self, of_outputs: list[Any], nothing: Any) -> Any:
        """Return what belongs to the only output, `nothing` before it exists; or by label."""
        if self.targets.has_one_margin:
            return of_outputs[0] if of_outputs else nothing
        return dict(zip(self.targets.labels.seen, of_outputs, strict=True))

    def _facts(self) -> dict[str, object]:
        own = {"bias": self.intercept, "learning rate": self.rate, "largest weights": self.weights}
        return super()._facts() | own

    @property
    def rate(self) -> float:
        """The learning rate of the next example: the factor of its loss gradient."""
        return self.model.rate

    @guarded
    def objective(self, X: Batch, y: Labels, w: Weights = 1.0) -> float:
        """Return the objective that learning minimises: lambda / 2 ||w||^2 plus the mean loss.

        Parameters
        ----------
        X, y, w
            Rows, labels and weights as in `learn_many`. A label that was never learnt is on the
            negative side of all outputs.

        Returns
        -------
        The objective over these rows.

        Raises
        ------
        FeatureError, LabelError, ParameterError
            Rows, labels or weights cannot be used.

        """
        x = batches.known_rows(self.schema, X, self.is_sparse)
        labels = frames.labels_of(y, shape(x)[0])
        check_present(labels)
        seen, number_of = self.targets.labels.seen, self.targets.number_of
        classes = labels.numbers(lambda label: number_of(label) if label in seen else -1.0)
        return self.objective_of(x, classes, weights_of(w, len(labels)))

    def objective_of(self, x: Rows, classes: np.ndarray, weights: np.ndarray) -> float:
        """Return the primal objective over rows; `classes` and `weights` are those of the rows."""
        return self.model.objective_of(x, classes, weights)

    @property
    def kappa(self) -> float:
        """The share of examples that changed no weights; 0 before the first example."""
        n = self.n_examples * self.model.n_outputs
        return 1.0 - self.model.n_updates / n if n else 0.0

    @property
    def certificate(self) -> Certificate:
        """No bound, and the reason: there are no dual coefficients."""
        return Certificate(
            None,
            "no certificate: stochastic gradients keep no dual coefficients whose gap could be "
            "measured; follow the objective on the sample",
        )

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example: examples, and updates of the weights."""
        own = {"examples": self.n_examples, "updates": self.model.n_updates}
        return own | self._ignored()
