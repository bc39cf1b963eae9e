"""SVMs by stochastic gradient descent as a River classifier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamsvm.features.schema import LIMIT
from streamsvm.learners.bases.linear_file import LINEAR_FILE
from streamsvm.learners.bases.linear_learner import LinearLearner
from streamsvm.learners.bases.parameter_checks import check_number
from streamsvm.learners.bases.registry import register_learner
from streamsvm.solvers.linear import sgd


class SVMSGDClassifier(LinearLearner):
    """Linear SVM by stochastic gradient descent: one step an example, at the speed of reading it.

    After example t, w and b move against the gradient of the regularised loss, at a rate eta_t::

        min_w  lambda / 2 ||w||^2 + 1/n sum_i l(y_i (<w, x_i> + b))
        eta_t = (t0 / (t0 + t))^power / (lambda t0)

    Any number of classes: two are one linear function, more one each against the rest. Memory does
    not grow with the stream, but with the features seen. Scale the features first (`StandardScaler`
    in front), or the rate is that of the largest.

    Parameters
    ----------
    loss
        "hinge" (the SVM's), the default; "squared_hinge"; "log" (logistic regression); "huber" (the
        hinge with a rounded corner).
    l2
        Positive: lambda. .0001 by default.
    C
        In the place of `l2`, with `n_expected`: lambda = 1 / (C n_expected).
    n_expected
        How many examples C is about, at least 1.
    t0
        At least 1: how soon the rate falls; it begins at 1 / (lambda t0). None, the default: the
        rule of the thesis, a pass over the first examples (up to 1024, looked at when 1, 4, 16, ...
        were seen) with several values, of which that with the lowest objective is taken.
    power
        How the rate falls, 0 to 1. None, the default: 1, which the theory wants, or 3/4 with
        ``averaged=True``. 0 is a constant rate, for streams that drift.
    skip
        Examples between two steps on the regularisation term. 1, the default, is SGD; more is
        SVMSGD2, "auto" with 16 / share of nonzero features.
    averaged
        True: predict by the mean of the weights over the past, the later ones weighing more. An
        int of at least 2: by their mean over about so many examples. False: by the last weights.
        None, the default: by the mean over the past or by the last weights, whichever predicted
        better of late: the first is right for streams that stay as they are, the second for those
        that drift.
    bias_rate
        The rate of the bias over that of the weights, at least 0; .01 by default, as in Bottou's
        programs, since the bias' gradient does not vanish with sparse features. 0: no bias.
    class_weight
        None or a dict {label: factor of the loss} (1 for labels not named).
    sparse, hashing, max_features
        As in `LASVMClassifier`.
    seed
        Accepted like everywhere, without effect: nothing is drawn.

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

    _solver = sgd

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
        class_weight: dict[Any, float] | None = None,
        sparse: bool | None = None,
        hashing: int | None = None,
        max_features: int = LIMIT,
        seed: int | None = None,
    ) -> None:
        self.seed = seed
        self.power, self.skip, self.averaged = power, skip, averaged
        super().__init__(
            loss=loss,
            l2=l2,
            C=C,
            n_expected=n_expected,
            t0=t0,
            power=(0.75 if averaged is True else 1.0) if power is None else power,
            skip=0.0 if skip == "auto" else check_number("skip", skip, 1.0),
            averaged=averaged,
            bias_rate=bias_rate,
            class_weight=class_weight,
            sparse=sparse,
            hashing=hashing,
            max_features=max_features,
        )

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that River's checks run with."""
        yield {}
        yield {"loss": "log", "averaged": True}
        yield {"averaged": False, "bias_rate": 1.0}
        yield {"loss": "squared_hinge", "skip": "auto", "t0": 1e5}
        yield {"power": 0.0, "sparse": True}

    def _second(self) -> float | None:
        return None if self.averaged is False else 0.0


register_learner(SVMSGDClassifier, "sgd", **LINEAR_FILE)
