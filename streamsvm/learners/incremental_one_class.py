"""An exact one-class SVM after every example, which can take examples back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from river import base

from streamsvm import kernels
from streamsvm._parameter_checks import check_number
from streamsvm.features import frames
from streamsvm.features.events import Event
from streamsvm.features.frames import Batch
from streamsvm.features.schema import LIMIT
from streamsvm.labels.label_column import Label
from streamsvm.labels.labelled_rows import Ids, Weights
from streamsvm.learners.bases.exact import stream_file
from streamsvm.learners.bases.exact.exact_stream import ExactStream
from streamsvm.model_files.codec import register
from streamsvm.models.model import Kernel

_LEAST_NU = 1e-6
_STEEPNESS, _LEAST_UNIT, _LARGEST_EXPONENT = 4.0, 1e-9, 700.0


class IncrementalOneClassSVM(ExactStream, base.AnomalyDetector):
    """Exact one-class SVM with kernels: the optimum after each example, and after taking any back.

    It finds a region with at most a share `nu` of the examples outside. The score of an event is
    from 0 to 1, as River's metrics and filters expect: above .5 outside, and near 1 far away from
    all examples. All examples are kept; see
    `IncrementalSVMClassifier` for what it costs, and `window` for streams without end.

    Parameters
    ----------
    kernel
        As in `IncrementalSVMClassifier`.
    nu
        From 1e-6 to 1: at most this share of the examples is outside, at least this share are
        support vectors. 0.1 by default, as in River.
    window, max_features, cache_mb, missing
        As in `IncrementalSVMClassifier`.

    Attributes
    ----------
    n_kept, dual, bias, delta, n_support_vectors, feature_names, memory_usage
        As in `IncrementalSVMClassifier`.

    References
    ----------
    Laskov, Gehl, Krueger, Mueller, Incremental Support Vector Learning, JMLR 7 (2006); Schoelkopf,
    Platt, Shawe-Taylor, Smola, Williamson, Estimating the Support of a High-Dimensional
    Distribution, Neural Computation 13 (2001).

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import IncrementalOneClassSVM
    >>> model = IncrementalOneClassSVM(nu=0.05, window=300)
    >>> for x, _ in datasets.Bananas().take(500):
    ...     model.learn_one(x)
    >>> inside, outside = ({name: value for name in x} for value in (0.5, 9.0))
    >>> model.score_one(inside) < 0.5 < 0.98 < model.score_one(outside)
    True

    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        nu: float = 0.1,
        window: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        missing: str = "mean",
    ) -> None:
        self.nu = check_number("nu", nu, _LEAST_NU, 1.0)
        super().__init__(kernel, window, max_features, cache_mb, missing, np.inf)
        self.problem.share = self.nu

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {}
        yield {"kernel": kernels.RBF(gamma=0.1), "nu": 0.3, "window": 40}

    def learn_one(self, x: Event, w: float = 1.0) -> None:
        """Learn one event.

        Parameters
        ----------
        x
            Features by name.
        w
            Weight of the example, at least 0.

        Raises
        ------
        FeatureError, ParameterError
            The event cannot be used; the model has not changed.

        """
        self._learn_event(x, 0.0, w)

    def learn_many(self, X: Batch, w: Weights = 1.0, ids: Ids | None = None) -> None:
        """Learn the rows of a batch in order: the same model as by `learn_one`.

        Parameters
        ----------
        X
            NumPy array (n, d), Arrow RecordBatch or Table, pandas or polars frame.
        w
            One weight for all, or n weights.
        ids
            None, or n whole numbers from 1 by which rows are taken back; one that is kept is not
            learnt again.

        Raises
        ------
        FeatureError, ParameterError
            A row cannot be used; the model has not changed.

        """
        self._learn_rows(X, None, w, ids)

    def learn_example(self, x: np.ndarray, y: float, weight: float, number: int) -> None:
        """Learn a row, float64 (features,)."""
        self.model.add_example(x, 0.0, weight, number, weight, y)

    def score_one(self, x: Event) -> float:
        """Return the anomaly score of an event.

        Returns
        -------
        float
            From 0 to 1: above .5 outside of the region, below inside; 0.0 before the first
            example. It falls with the `decision_function` f of scikit-learn's OneClassSVM, which
            `decision_of` returns: 1 / (1 + exp(4 f / r)), where -r is the `bias`. With an RBF an
            event far away from all examples, where f = -r, has 1 / (1 + exp(-4)) = .982.

        """
        with self.lock:
            return self._scores(np.array([self.decision_of(x)]))[0]

    def score_many(self, X: Batch) -> Any:
        """Return the anomaly score of each row of a batch, in a container of the kind of `X`."""
        with self.lock:
            return frames.like(X, self._scores(self.decisions_of(X)))

    def _scores(self, decisions: np.ndarray) -> list[float]:
        total = float(self.problem.state.info[0].total)
        if not total:
            return [0.0] * len(decisions)
        # In units of the distance from the origin, which is almost 0 where a line is no border.
        unit = max(abs(self.bias), _LEAST_UNIT * total)
        exponents = np.clip(_STEEPNESS * decisions / unit, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
        found: list[float] = (1.0 / (1.0 + np.exp(exponents))).tolist()
        return found

    def _y_of_kept(self) -> Iterable[tuple[Label, ...]]:
        return (() for _ in range(self.problem.n))


register(IncrementalOneClassSVM, more=stream_file.as_file, read_more=stream_file.read)
