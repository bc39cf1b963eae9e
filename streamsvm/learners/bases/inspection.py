"""What every learner can be asked without learning: counts, labels, probabilities, margins."""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar

import numpy as np

from streamsvm.features import frames
from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.labels.outputs import Output
from streamsvm.monitor.certificate import Certificate, Looks
from streamsvm.support.rows import Rows


class Inspection(abc.ABC):
    """The methods and properties of every learner that only read the model.

    They are for users, runs and monitors. `Learner` sets the attributes below.
    """

    _output: ClassVar[Output]
    _schema: Schema
    _labels: Any
    _calibration: Any
    _n_learnt: np.ndarray
    _lock: Any

    _last_label: tuple[np.ndarray, np.ndarray] | None = None
    """What `solvers.adaptive.last_label` needs; None: it is not used."""

    # What only some learners have; a monitor asks all of them.

    @property
    def looks(self) -> Looks:
        """The sums of looks so far, which estimate and bound the mean gap; none by default."""
        return Looks()

    @property
    def papers_certificate(self) -> Certificate | None:
        """The bound of the mean gap in the papers' form; None: it is not for this learner."""
        return None

    @property
    def n_drifts(self) -> int | None:
        """How often a drift was noticed; None: the learner does not look for drifts."""
        return None

    compiles_classes_apart = False
    """Whether three or more classes run other compiled code than two."""

    @property
    def _n_examples(self) -> int:
        n: int = self._n_learnt.item()
        return n

    @_n_examples.setter
    def _n_examples(self, n: int) -> None:
        self._n_learnt[0] = n

    @abc.abstractmethod
    def _margins(self, x: Rows) -> np.ndarray:
        """Return the margins of rows."""

    @abc.abstractmethod
    def _margins_many(self, X: Any) -> np.ndarray:
        """Return the margins of the rows of a batch; the caller holds the lock."""

    @property
    def most_features(self) -> float:
        """How many features an event may have at most; infinity if their names are hashed."""
        return math.inf if self._schema.buckets is not None else self._schema.limit

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of each part of the model; a learner that has one part only names none."""
        return {}

    @property
    def memory_usage(self) -> int:
        """Bytes of all arrays, including cached kernel rows and scratch, and of the names."""
        return sum(self.memory_parts.values())

    @property
    def n_examples(self) -> int:
        """Number of examples learnt."""
        return self._n_examples

    @property
    def feature_names(self) -> list[Name]:
        """The features seen, in the order of the columns of `support_vectors().rows`."""
        with self._lock:
            return list(self._schema.names)

    @property
    def classes(self) -> list[Any]:
        """The labels seen, in the order of first appearance."""
        return list(self._labels.seen)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels in the order of the outputs.

        With two classes the label of margins below 0 comes first; a label not seen yet is None.
        """
        return tuple(self._labels.ordered)

    @property
    def most_classes(self) -> int | None:
        """The largest number of classes that the learner takes; None: any number."""
        return self._labels.most

    def probabilities_of(self, margin: Any) -> dict[Any, float]:
        """Return the calibrated probabilities at a margin.

        Parameters
        ----------
        margin
            A margin; for several outputs a list of scores.

        Returns
        -------
        {label: probability}.

        """
        return self._output.probabilities(self._calibration, self._labels, margin, self._n_examples)

    def label_of(self, margin: Any) -> Any:
        """Return the label that a margin predicts.

        Parameters
        ----------
        margin
            A margin; for several outputs a list of scores.

        Returns
        -------
        One of the labels seen; None before the first label.

        """
        return self._labels.label(margin)

    def labels_of(self, margins: np.ndarray) -> list[Any]:
        """Return the labels that margins predict.

        Parameters
        ----------
        margins
            float64 (n,), or (n, classes) for several outputs.

        Returns
        -------
        n labels; None before the first label.

        """
        return self._labels.predicted(margins).tolist()

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of rows.

        Parameters
        ----------
        x
            n rows over the features seen.

        Returns
        -------
        float64 (n,), or (n, classes) for several outputs.

        """
        return self._margins(x)

    def margins_many(self, X: Any) -> np.ndarray:
        """Return the margins of the rows of a batch, as `labels_of` and others take them.

        Parameters
        ----------
        X
            A batch as in `learn_many`.

        Returns
        -------
        As `decision_function_many`; several classes may have further columns.

        """
        with self._lock:
            return self._margins_many(X)

    def losses_of(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the hinge loss of each example.

        Parameters
        ----------
        signs
            float64 (n,): +1 or -1; for several outputs the indices of the classes.
        margins
            float64 (n,), or (n, classes) for several outputs.

        Returns
        -------
        float64 (n,).

        """
        return self._output.losses(signs, margins)

    def matrix_of(self, X: Any) -> Matrix | SparseMatrix:
        """Return a batch as a matrix that names its columns, to be learnt or predicted.

        Parameters
        ----------
        X
            A batch as in `learn_many`.

        Returns
        -------
        The same rows, with the name of each column.

        Raises
        ------
        FeatureError
            This is no batch of features.

        """
        return frames.matrix_of(X, self._schema)

    def _event_model(self) -> Any:
        """Return the learner whose arrays an `EventPath` uses, of which `_bound` tells."""
        return self

    def _sign_of(self, label: Any) -> float:
        """Return the sign of a label; 0.0 for a label that was never seen."""
        labels = self._labels
        # First a dict, as there may be thousands of labels; with fewer than two it is empty.
        is_seen = label in labels.signs or label in labels.seen[:2]
        return float(labels.sign(label)) if is_seen else 0.0

    @property
    def missing_values(self) -> dict[Name, int]:
        """How often features were missing in examples learnt, since their first values.

        Without features of only 0 and 1, and none of sparse rows: there 0 is what is missing.
        """
        with self._lock:
            return self._schema.missing.counts(self._schema.names)

    def _ignored(self) -> dict[str, int]:
        """Return the counter of features that were ignored, if there are any."""
        n = self._schema.n_ignored
        return {"features_ignored": n} if n else {}
