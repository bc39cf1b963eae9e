"""A parser of sentences learnt from candidate meanings, as a River estimator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from streamsvm._parameter_checks import check_cost, check_seed, check_whole
from streamsvm.errors import FeatureError, LabelError, ParameterError
from streamsvm.learners.bases.registry import register_learner
from streamsvm.model_files.json_values import Content
from streamsvm.structured.batches import batch_rows, words_of
from streamsvm.structured.learner import SentenceLearner
from streamsvm.structured.parser.algorithm_24 import EXPLORATIONS
from streamsvm.structured.parser.meanings import (
    Candidates,
    Meaning,
    read_candidates,
    read_meaning,
    symbols_in,
    symbols_of,
)
from streamsvm.structured.parser.parser import Parse, Parser, keys_of
from streamsvm.structured.sequences.learner import LIMIT
from streamsvm.support.declaration import NamedArrays
from streamsvm.support.locked import guarded

_WIDEST = 20
_MOST_SYMBOLS = 10_000


class OSPASParser(SentenceLearner):
    """Parse sentences, learnt in one pass from sentences with bags of candidate meanings.

    It is not known which of the candidates a sentence says, nor which word stands for which part of
    it. Words are labelled with symbols by Algorithm 24 of the thesis, which takes a symbol from the
    bag when it is predicted, and makes a step of the ambiguous SVM when it predicts what is not in
    the bag. Then the words get roles for each relation, and symbols and roles are put together
    again: also to meanings that were never seen.

    Parameters
    ----------
    C
        Positive: the largest step of the dual; .1 as in the thesis.
    exploration
        Which word is labelled next while learning: "order_free", the default, the one with the
        highest score; "random" or "left_to_right".
    window
        So many words before a word count for its symbol, joined with it: 1 by default, 0 if each
        word stands for itself.
    role_window
        So many words, and symbols predicted, to both sides count for its role.
    averaged
        True, the default: predict by the mean of the weights after each sentence. False is faster,
        and better aligned where words stand for themselves.
    max_features
        The most features of each of the three models; `n_ignored_features` counts how often others
        occurred. Weights take 16 bytes for each feature and symbol.
    max_symbols
        The most symbols; a sentence with one more is refused.
    seed
        Whole number of at least 0, or None: other draws each time.

    Attributes
    ----------
    symbols, relations
        The symbols seen, in the order of first appearance; those that are relations.
    n_examples, n_words, n_features, n_ignored_features, memory_usage
        Sentences, words and features of words seen; how often features of any kind were ignored
        beyond `max_features`; bytes of all arrays.
    n_updates, sum_of_losses, mean_loss, regret_bound
        Steps of the model of symbols, the sum and the mean of the losses before them, and the bound
        of proposition 13 on how much higher their mean is than that of the present weights.

    References
    ----------
    Bordes, New Algorithms for Large-Scale Support Vector Machines, thesis (2010), section 6.2;
    Chen, Mooney, Learning to Sportscast, ICML (2008).

    Examples
    --------
    >>> from streamsvm import OSPASParser
    >>> model = OSPASParser(window=0, averaged=False)
    >>> for _ in range(20):
    ...     model.learn_one("rex sees tom", ["see(dog, cat)", "eat(cat)"])
    ...     model.learn_one("tom sees rex", ["see(cat, dog)", "eat(dog)"])
    ...     model.learn_one("tom eats", ["see(dog, cat)", "eat(cat)"])
    ...     model.learn_one("rex eats", ["see(cat, dog)", "eat(dog)"])
    >>> model.predict_one("rex sees tom").meaning
    ('see', 'dog', 'cat')

    """

    has_regret = True

    def __init__(
        self,
        C: float = 0.1,
        exploration: str = "order_free",
        window: int = 1,
        role_window: int = 3,
        averaged: bool = True,
        max_features: int = LIMIT,
        max_symbols: int = 1000,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.C = check_cost(C)
        if exploration not in EXPLORATIONS:
            raise ParameterError(f"exploration={exploration!r}: use one of {[*EXPLORATIONS]}")
        self.exploration, self.averaged = exploration, bool(averaged)
        self.window = check_whole("window", window, 0, _WIDEST)
        self.role_window = check_whole("role_window", role_window, 0, _WIDEST)
        self.max_features = check_whole("max_features", max_features, 1, 2**30)
        self.max_symbols = check_whole("max_symbols", max_symbols, 1, _MOST_SYMBOLS)
        self.seed = check_seed(seed)
        self.parser = Parser(
            self.C,
            EXPLORATIONS[exploration],
            (self.window, self.role_window),
            self.averaged,
            self.max_features,
            self.seed,
        )

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that tests run with."""
        yield {"seed": 1}
        yield {"seed": 1, "exploration": "random", "window": 0, "averaged": False}
        yield {"seed": 1, "exploration": "left_to_right", "C": 1.0}

    # Learning

    def learn_one(self, sentence: Any, candidates: Iterable[Any]) -> None:
        """Learn one sentence.

        Parameters
        ----------
        sentence
            A list of at most 2,000 words, or a string, which is split at blanks.
        candidates
            Meanings of which some may be right: strings such as ``"pass(purple9, purple2)"``, or
            nested lists or tuples, the relation first. Or the symbols alone: strings without
            parentheses, each as often as it may be used. With none of them the sentence is counted,
            and nothing is learnt.

        Raises
        ------
        FeatureError, LabelError
            The sentence or a candidate cannot be used; the model has not changed.
        ModelBusyError
            The caller is inside another call of this model: see `Learner.learn_one`.

        """
        self._learn([words_of(sentence)], [read_candidates(candidates)])

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn sentences in order: the same model as by `learn_one`.

        Parameters
        ----------
        X
            A list of sentences, or an Arrow column of strings or of lists of strings.
        y
            A list of candidates for each sentence, or an Arrow column of lists of strings.

        Raises
        ------
        FeatureError, LabelError
            A sentence or a candidate cannot be used; the model has not changed.
        ModelBusyError
            As for `learn_one`.

        """
        self._learn(*self._read(X, y))

    def _read(self, X: Any, y: Any) -> tuple[list[list[str]], list[Candidates]]:
        sentences = [words_of(sentence) for sentence in batch_rows(X, FeatureError)]
        return sentences, [read_candidates(candidates) for candidates in batch_rows(y, LabelError)]

    def _check_room(self, examples: Sequence[list[str]], labels: Sequence[Candidates]) -> None:
        grammar = self.parser.grammar
        n_new = len(symbols_in(labels) - grammar.numbers.keys())
        if grammar.n_symbols - 1 + n_new > self.max_symbols:
            raise LabelError(f"there are more than max_symbols={self.max_symbols} symbols")

    def _learn_next(self, example: list[str], label: Candidates) -> None:
        self.parser.learn(example, label)

    def _predict_next(self, example: list[str]) -> Parse:
        return self.parser.parse(example)

    def _compared(self, label: Candidates, predicted: Parse) -> tuple[list[Any], list[Any]]:
        # Whether the meaning is among the candidates; of a sentence without one, nothing is said.
        is_scored = predicted.meaning is not None and bool(label)
        return [True], [predicted.meaning in label if is_scored else None]

    # Predicting

    def predict_one(self, sentence: Any) -> Parse:
        """Return the symbols of the words, and the meanings put together from them.

        Parameters
        ----------
        sentence
            As in `learn_one`. A word that was never learnt has no symbol, unless its neighbours
            say otherwise.

        Returns
        -------
        Parse
            Symbols, roles and meanings.

        Raises
        ------
        FeatureError
            The sentence cannot be used.

        """
        return self.predict_many([sentence])[0]

    @guarded
    def predict_many(self, X: Any) -> list[Parse]:
        """Return what each of several sentences is predicted to say; `X` as in `learn_many`."""
        sentences = [words_of(sentence) for sentence in batch_rows(X, FeatureError)]
        return [self.parser.parse(sentence) for sentence in sentences]

    @guarded
    def predict_symbols_many(self, X: Any) -> list[list[str | None]]:
        """Return the symbols of the words of each sentence alone, which is much faster."""
        sentences = [words_of(sentence) for sentence in batch_rows(X, FeatureError)]
        ends = np.cumsum([0, *map(len, sentences)])
        keys = np.concatenate([np.zeros(0, np.uint64), *map(keys_of, sentences)])
        labels = self.parser.scores(keys, ends).argmax(axis=1)
        names = [None, *self.parser.grammar.names[1:]]
        flat, stops = [names[label] for label in labels.tolist()], ends.tolist()
        return [flat[i:j] for i, j in pairwise(stops)]

    @guarded
    def scores_one(self, sentence: Any) -> dict[Meaning, float]:
        """Return all meanings that can be put together from a sentence, and how sure they are."""
        return self.parser.meanings(words_of(sentence))

    def match_one(self, sentence: Any, candidates: Iterable[Any]) -> Any:
        """Return the candidate that is the predicted meaning, or whose symbols are most like it.

        Parameters
        ----------
        sentence, candidates
            As in `learn_one`.

        Returns
        -------
        The candidate that is the predicted meaning; else the one with the highest cosine similarity
        of symbols (thesis, C.7), as it was given; of equal ones the first; None if none has a
        symbol in common.

        Raises
        ------
        FeatureError, LabelError
            The sentence or a candidate cannot be used.

        """
        given = list(candidates)
        meaning = self.predict_one(sentence).meaning
        own, best, found = set(symbols_of(meaning or ())), 0.0, None
        for candidate in given:
            read = read_meaning(candidate)
            if read == meaning:
                return candidate
            other = set(symbols_of(read))
            cosine = len(own & other) / math.sqrt(max(1, len(own) * len(other)))
            if cosine > best:
                best, found = cosine, candidate
        return found

    def rehearse(self) -> None:
        """Learn and predict made-up sentences, so that all that is needed is compiled."""
        X = [["she", "feeds", "the", ("cat", "dog", "hen")[i % 3]] for i in range(12)]
        y = [[f"feed(she, {sentence[3]})", "eat(cat)"] for sentence in X]
        self.learn_many(X, y)
        self.predict_many(X)
        self.predict_symbols_many(X)
        self._save_and_load().learn_many(X, y)

    # What was learnt

    @property
    def symbols(self) -> list[str]:
        """The symbols seen, in the order of first appearance."""
        return self.parser.grammar.names[1:]

    @property
    def relations(self) -> list[str]:
        """The symbols that are relations, in the order of first appearance."""
        grammar = self.parser.grammar
        return [grammar.names[symbol] for symbol in dict.fromkeys(grammar.relations)]

    @property
    def n_examples(self) -> int:
        """Number of sentences learnt."""
        return self.parser.n_examples

    @property
    def n_words(self) -> int:
        """Number of words of sentences that had candidates."""
        return self.parser.n_words

    @property
    def n_features(self) -> int:
        """Number of features of words seen."""
        return self.parser.symbols.n_features

    @property
    def n_ignored_features(self) -> int:
        """How often features were ignored, as there were `max_features` of their kind."""
        return sum(int(m.vocabulary.counts[1]) for m in self.parser.rankings.values())

    @property
    def n_updates(self) -> int:
        """Number of steps of the model of symbols: predictions that were not in the bag."""
        return int(self.parser.symbols.sums[0])

    @property
    def sum_of_losses(self) -> float:
        """Sum of the mean pairwise losses before these steps."""
        return float(self.parser.symbols.sums[1])

    @property
    def mean_loss(self) -> float | None:
        """The mean pairwise loss before these steps; None before the first."""
        return self.sum_of_losses / self.n_updates if self.n_updates else None

    @property
    def figures(self) -> dict[str, Any]:
        """Numbers of words, symbols, relations, features and steps."""
        found = {"n_words": self.n_words, "n_symbols": len(self.symbols)}
        found |= {"n_relations": len(self.relations), "n_features": self.n_features}
        return found | {"n_updates": self.n_updates}

    @property
    def regret_bound(self) -> float:
        """Proposition 13: |w|^2 / (2 n C) + rho C / 2 over n steps; infinite before the first."""
        model = self.parser.symbols
        square, rho = float(np.square(model.weights).sum()), 2.0 * float(model.sums[3])
        if not self.n_updates:
            return math.inf
        return square / (2.0 * self.n_updates * self.C) + rho * self.C / 2.0

    @property
    def memory_usage(self) -> int:
        """Bytes of all arrays."""
        return self.parser.n_bytes


def _more(learner: OSPASParser) -> Content:
    return learner.parser.as_file()


def _read_more(learner: OSPASParser, content: dict[str, Any], arrays: NamedArrays) -> None:
    learner.parser.read_file(content, arrays, learner.max_symbols)


register_learner(OSPASParser, "ospas", more=_more, read_more=_read_more, is_compressed=True)
