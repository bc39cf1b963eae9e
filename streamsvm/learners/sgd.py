"""SVMs by stochastic gradient descent as a River classifier."""

from __future__ import annotations

from collections.abc import Iterator

from streamsvm._parameter_checks import check_seed
from streamsvm.features.schema import LIMIT
from streamsvm.labels.class_labels import ClassWeight
from streamsvm.learners.bases.linear.linear_learner import LinearLearner
from streamsvm.learners.bases.registry import register_learner
from streamsvm.models.linear.linear_model import schedule_of
from streamsvm.selection.strategies import Selection
from streamsvm.solvers.linear.step import SGD


class SVMSGDClassifier(LinearLearner):
    """Linear SVM by stochastic gradient descent: one step per example.

    After example t, w and b move against the gradient of the regularised loss, at a rate eta_t:

        min_w  lambda / 2 ||w||^2 + 1/n sum_i l(y_i (<w, x_i> + b))
        eta_t = (t0 / (t0 + t))^power / (lambda t0)

    Two classes are separated by one linear function; of more classes each has a linear function
    against the rest. Memory grows with the number of features, not with the number of examples.
    Scale the features first (`StandardScaler` in front): otherwise the feature with the largest
    values determines the rate for all. A step moves the margin of its own example by at most 1,000
    times the slope of the loss (more if the first rate is above 1), so that no outlier ruins the
    weights.

    Parameters
    ----------
    loss
        "hinge" (the SVM's), the default; "squared_hinge"; "log" (logistic regression); "huber" (the
        hinge with a rounded corner). A step of the squared hinge, whose slope has no bound, goes no
        further than to a margin of 1: otherwise one outlier would make it diverge.
    l2
        Positive: lambda. .0001 by default.
    C
        Instead of `l2`, together with `n_expected`: lambda = 1 / (C n_expected). Positive.
    n_expected
        The number of examples in the stream, at least 1; used with `C`.
    t0
        At least 1: the rate begins at 1 / (lambda t0), and has halved (with power 1) after t0
        examples. None, the default: t0 is chosen by the rule of the thesis. After 1, 4, 16, ...
        1024 examples, several values are tried in a pass over the examples so far, and the value
        with the lowest objective is taken.
    power
        The exponent with which the rate falls, 0 to 1. None, the default: 1, as in theory, or 3/4
        with ``averaged=True``. 0 is a constant rate, for streams that drift.
    skip
        Number of examples between two steps on the regularisation term, at least 1: only there are
        the weights made smaller, by `skip` times as much. 1, the default, is SGD; larger numbers
        are SVMSGD2; "auto" is 16 / share of nonzero features.
    averaged
        True: predict with the mean of all past weights, in which later weights count more. An int
        of at least 2: with their mean over about this many examples. False: with the last weights.
        None, the default: with the mean of all past weights or with the last weights, whichever
        had the smaller loss recently; the mean suits stationary streams, the last weights suit
        streams that drift.
    bias_rate
        The rate of the bias divided by that of the weights, at least 0; .01 by default, as in
        Bottou's programs, since every example changes the bias, but only few examples change the
        weight of a sparse feature. 0: no bias.
    class_weight
        None or a dict {label: factor of the loss} (1 for labels not named).
    sparse, hashing, max_features, missing, selection
        As in `LASVMClassifier`.
    max_classes
        The largest number of classes, at least 2; 1,000 by default, None: any number. An example of
        one more is refused: each class has weights of its own, and each event changes all of them.
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
    Bordes, thesis (2010), chapter 3; Bottou, SVMSGD (2007); Shalev-Shwartz, Singer, Srebro,
    Pegasos, ICML (2007); Xu, Towards Optimal One Pass Large Scale Learning with Averaged Stochastic
    Gradient Descent (2011).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import StandardScaler, SVMSGDClassifier
    >>> model = StandardScaler() | SVMSGDClassifier()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 8...%

    """

    def __init__(
        self,
        loss: str = "hinge",
        l2: float = 1e-4,
        C: float | None = None,
        n_expected: int | None = None,
        t0: float | None = None,
        power: float | None = None,
        skip: int | str = 1,
        averaged: bool | int | None = None,
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
        self.power, self.skip, self.averaged = power, skip, averaged
        self.bias_rate, self.seed = bias_rate, check_seed(seed)
        if power is None:
            power = 0.75 if averaged is True else 1.0
        schedule = schedule_of(loss, l2, C, n_expected, t0, power, skip, averaged, bias_rate)
        steps = SGD, schedule, None if averaged is False else 0.0
        super().__init__(
            steps, t0, class_weight, sparse, hashing, max_features, missing, max_classes
        )
        self.choose_by(selection)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {}
        yield {"loss": "log", "averaged": True}
        yield {"averaged": False, "bias_rate": 1.0}
        yield {"loss": "squared_hinge", "skip": "auto", "t0": 1e5}
        yield {"power": 0.0, "sparse": True}


register_learner(SVMSGDClassifier, "sgd")
