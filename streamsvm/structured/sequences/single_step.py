"""The structured perceptron and passive-aggressive steps as River estimators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamsvm._parameter_checks import check_cost
from streamsvm.learners.bases.registry import register_learner
from streamsvm.structured.sequences.file import SETTINGS
from streamsvm.structured.sequences.inference import new_solver
from streamsvm.structured.sequences.learner import LIMIT, SequenceLearner
from streamsvm.structured.sequences.model import PASSIVE_AGGRESSIVE, PERCEPTRON


class SequencePerceptron(SequenceLearner):
    """Label the tokens of sentences by a perceptron, which changes weights where it is wrong.

    It is the simplest and fastest learner of label sequences; `LaRankSequenceLabeler` is more
    accurate after one pass. Sentences and labels are as for that.

    Parameters
    ----------
    inference
        "greedy", the default, or "exact": as in `LaRankSequenceLabeler`. A greedy one learns each
        token after the true labels before it.
    order
        As in `LaRankSequenceLabeler`.
    averaged
        True, the default: predict by the mean of the weights after each sentence.
    class_weight
        None, or a dict {label: factor} (1 for labels not named): the factor of the steps for tokens
        of this label; for greedy inference only.
    max_features
        As in `LaRankSequenceLabeler`; an averaged feature takes twice the memory.
    max_classes
        As in `LaRankSequenceLabeler`.

    Attributes
    ----------
    classes
        The labels seen, in the order of first appearance.
    n_examples, n_tokens, n_features, memory_usage
        Sentences, tokens and features seen; bytes of all arrays.

    References
    ----------
    Collins, Discriminative Training Methods for Hidden Markov Models, EMNLP (2002); Bordes, New
    Algorithms for Large-Scale Support Vector Machines, thesis (2010), Algorithm 6.

    Examples
    --------
    >>> from streamsvm import SequencePerceptron
    >>> model = SequencePerceptron()
    >>> for _ in range(3):
    ...     model.learn_one([["the"], ["dog"], ["barks"]], ["DET", "NOUN", "VERB"])
    >>> model.predict_one([["the"], ["dog"]])
    ['DET', 'NOUN']

    """

    def __init__(
        self,
        inference: str = "greedy",
        order: int | None = None,
        averaged: bool = True,
        class_weight: dict[Any, float] | None = None,
        max_features: int = LIMIT,
        max_classes: int | None = 1000,
    ) -> None:
        self.averaged = averaged
        solver = new_solver(PERCEPTRON, inference, order, is_averaged=bool(averaged))
        super().__init__(solver, 1.0, inference, order, class_weight, max_features, max_classes)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that the tests of all sequence learners run with."""
        yield {}
        yield {"averaged": False, "class_weight": {"B": 2.0}}
        yield {"inference": "exact"}
        yield {"inference": "exact", "order": 0, "averaged": False}


register_learner(SequencePerceptron, "sequence_perceptron", **SETTINGS)


class SequencePA(SequenceLearner):
    """Label the tokens of sentences by passive-aggressive steps, one for each example.

    The weights change by the least that gives the true labels a margin over the most violating
    ones, but by at most C. This is `LaRankSequenceLabeler` without reprocessing: it is faster,
    keeps no patterns, and is less accurate. Sentences and labels are as for that.

    Parameters
    ----------
    inference
        "greedy", the default, or "exact": as in `LaRankSequenceLabeler`.
    order
        As in `LaRankSequenceLabeler`.
    C
        Positive: the largest step; .1 by default.
    averaged
        True, the default: predict by the mean of the weights after each sentence.
    class_weight
        As in `LaRankSequenceLabeler`.
    max_features
        As in `LaRankSequenceLabeler`; an averaged feature takes twice the memory.
    max_classes
        As in `LaRankSequenceLabeler`.

    Attributes
    ----------
    classes
        The labels seen, in the order of first appearance.
    n_examples, n_tokens, n_features, memory_usage
        Sentences, tokens and features seen; bytes of all arrays.

    References
    ----------
    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, Online Passive-Aggressive Algorithms, JMLR 7
    (2006); Bordes, New Algorithms for Large-Scale Support Vector Machines, thesis (2010), 5.3.4.

    Examples
    --------
    >>> from streamsvm import SequencePA
    >>> model = SequencePA()
    >>> for _ in range(3):
    ...     model.learn_one([["the"], ["dog"], ["barks"]], ["DET", "NOUN", "VERB"])
    >>> model.predict_one([["the"], ["dog"]])
    ['DET', 'NOUN']

    """

    def __init__(
        self,
        inference: str = "greedy",
        order: int | None = None,
        C: float = 0.1,
        averaged: bool = True,
        class_weight: dict[Any, float] | None = None,
        max_features: int = LIMIT,
        max_classes: int | None = 1000,
    ) -> None:
        check_cost(C)
        self.C, self.averaged = C, averaged
        solver = new_solver(PASSIVE_AGGRESSIVE, inference, order, is_averaged=bool(averaged))
        super().__init__(solver, C, inference, order, class_weight, max_features, max_classes)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that the tests of all sequence learners run with."""
        yield {}
        yield {"averaged": False, "order": 3, "C": 1.0}
        yield {"inference": "exact", "class_weight": {"B": 2.0}}


register_learner(SequencePA, "sequence_pa", **SETTINGS)
