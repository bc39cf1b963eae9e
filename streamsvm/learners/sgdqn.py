"""SGD-QN as a River classifier."""

from __future__ import annotations

from collections.abc import Iterator

from streamsvm._parameter_checks import check_seed
from streamsvm.features.schema import LIMIT
from streamsvm.labels.class_labels import ClassWeight
from streamsvm.learners.bases.linear.linear_learner import LinearLearner
from streamsvm.learners.bases.registry import register_learner
from streamsvm.models.linear.linear_model import schedule_of
from streamsvm.selection.strategies import Selection
from streamsvm.solvers.linear.step import SGDQN


class SGDQNClassifier(LinearLearner):
    """Linear SVM by stochastic gradients with a rate of its own for each feature (SGD-QN).

    The problem and the steps are those of `SVMSGDClassifier`, but each step is multiplied by a
    diagonal matrix B, which is estimated during the stream from the change of the gradient along a
    step: weights of features with a large curvature move less. On badly conditioned dense data it
    needs far fewer passes, each at less than twice the time.

    Parameters
    ----------
    loss
        "squared_hinge", the default, which has a curvature that B can be estimated from; or
        "hinge", "log", "huber". Steps of the squared hinge go no further than to a margin of 1, as
        in `SVMSGDClassifier`.
    l2, C, n_expected, t0
        As in `SVMSGDClassifier`.
    power
        The exponent with which the rate falls, 0 to 1: 1 by default; 0 is a constant rate, for
        streams that drift.
    skip
        Number of examples between two steps on the regularisation term, each followed by an update
        of B; at least 1. "auto", the default: 16 / share of nonzero features (thesis, 3.1.2).
    bias_rate, class_weight, sparse, hashing, max_features, missing, selection, max_classes
        As in `SVMSGDClassifier`.
    seed
        Without effect, since no random numbers are drawn; taken because all learners take it.

    Attributes
    ----------
    weights
        {feature: weight}; with more than two classes {label: {feature: weight}}. With `hashing` the
        keys are column numbers.
    intercept
        The bias; with more than two classes {label: bias}.
    rate
        The learning rate of the next example.
    classes
        The labels seen, in the order of first appearance.

    References
    ----------
    Bordes, Bottou, Gallinari, SGD-QN: Careful Quasi-Newton Stochastic Gradient Descent, JMLR 10
    (2009); Bordes, thesis (2010), 3.2, Algorithm 8.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import SGDQNClassifier, StandardScaler
    >>> model = StandardScaler() | SGDQNClassifier()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 8...%

    """

    def __init__(
        self,
        loss: str = "squared_hinge",
        l2: float = 1e-4,
        C: float | None = None,
        n_expected: int | None = None,
        t0: float | None = None,
        power: float = 1.0,
        skip: int | str = "auto",
        bias_rate: float = 0.01,
        class_weight: ClassWeight | None = None,
        sparse: bool | None = None,
        hashing: int | None = None,
        max_features: int = LIMIT,
        seed: int | None = None,
        missing: str = "mean",
        selection: Selection | None = None,
        max_classes: int | None = 1000,
    ) -> None:
        self.loss, self.l2, self.C, self.n_expected = loss, l2, C, n_expected
        self.power, self.skip, self.bias_rate = power, skip, bias_rate
        self.seed = check_seed(seed)
        schedule = schedule_of(loss, l2, C, n_expected, t0, power, skip, False, bias_rate)
        steps = SGDQN, schedule, 1.0 / schedule.lam
        super().__init__(
            steps, t0, class_weight, sparse, hashing, max_features, missing, max_classes
        )
        self.choose_by(selection)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {}
        yield {"loss": "hinge", "bias_rate": 1.0}
        yield {"power": 0.0, "sparse": True, "skip": 4}


register_learner(SGDQNClassifier, "sgdqn")
