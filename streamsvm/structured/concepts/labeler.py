"""Concept labels of words in a world that changes, as a River estimator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from streamsvm._parameter_checks import check_cost, check_size, check_whole
from streamsvm.errors import FeatureError, LabelError, ParameterError
from streamsvm.learners.bases.registry import register_learner
from streamsvm.model_files.json_values import Content, as_json, distinct
from streamsvm.structured import vocabulary
from streamsvm.structured.batches import NOTHING, batch_rows
from streamsvm.structured.concepts import search, state, step
from streamsvm.structured.concepts.worlds import (
    ConceptTarget,
    GroundedSentence,
    as_arrays,
    judged,
    read_meant,
    read_told,
)
from streamsvm.structured.learner import SentenceLearner
from streamsvm.support.declaration import FINITE, NOT_NEGATIVE, Field, NamedArrays
from streamsvm.support.locked import guarded

_EXPLORATIONS = ("order_free", "left_to_right")
_WEIGHTED = ("concepts", "links")
_TABLES = (*_WEIGHTED, "meanings")


class ConceptLabeler(SentenceLearner):
    """Say what each word of a sentence means, among the things of a world that changes.

    An example is a sentence and a universe: which concepts exist at that moment, and how they are
    related, such as where each is. The surest word is labelled first; what its concept is, and how
    other concepts are related to that, helps with the next one.

    Parameters
    ----------
    exploration
        "order_free", the default: the surest word first; or "left_to_right".
    C
        Positive: the cost of a violated constraint, and the largest step; .1 by default.
    window
        How many words and concepts to each side count, 1 to 12; 6 by default.
    averaged
        True, the default: predict by the mean of the weights after each sentence.
    max_contexts
        The most rows of each table of weights; `n_ignored_contexts` counts what had no room.
    max_concepts
        The most concepts, None for any number. More are refused. All keys and values of relations
        are concepts: leave out tables whose values never recur, such as times.

    Attributes
    ----------
    classes
        The concepts met, in the order of first appearance; the first is "-", nothing.
    relations
        The names of relations met, at most 8.
    n_examples, n_words, n_wrong
        Sentences and words learnt; sentences in which a choice was wrong before that.
    n_ignored_contexts
        How often contexts got no weights, as there were `max_contexts` of their kind.
    dual
        The dual objective of the steps: a lower bound of |w|^2 / 2 + C sum of losses, of any w, on
        the constraints met.
    memory_usage
        Bytes of all arrays.

    References
    ----------
    Bordes, New Algorithms for Large-Scale Support Vector Machines, thesis (2010), appendix C;
    Bordes, Usunier, Collobert, Weston, Towards Understanding Situated Natural Language, AISTATS
    (2010).

    Examples
    --------
    >>> from streamsvm import ConceptLabeler
    >>> from itertools import product
    >>> model = ConceptLabeler()
    >>> for ann, bea, cat in product(["hall", "attic", "yard"], repeat=3):
    ...     if (ann == cat) != (bea == cat):
    ...         who = "Ann" if ann == cat else "Bea"
    ...         world = {"location": {"Ann": ann, "Bea": bea, "cat": cat, "dog": "yard"}}
    ...         model.learn_one((["she", "feeds", "the", "cat"], world), [who, "feed", "-", "cat"])
    >>> world = {"location": {"Ann": "hall", "Bea": "attic", "dog": "attic", "cat": "yard"}}
    >>> model.predict_one((["she", "feeds", "the", "dog"], world))[0]
    'Bea'

    """

    window: int

    def __init__(
        self,
        exploration: str = "order_free",
        C: float = 0.1,
        window: int = 6,
        averaged: bool = True,
        max_contexts: int = 2**18,
        max_concepts: int | None = 1000,
    ) -> None:
        super().__init__()
        if exploration not in _EXPLORATIONS:
            raise ParameterError(f"exploration={exploration!r}: use one of {[*_EXPLORATIONS]}")
        self.exploration, self.C, self.averaged = exploration, check_cost(C), bool(averaged)
        self.window = check_whole("window", window, 1, search.MOST_WINDOW)
        self.max_contexts = check_whole("max_contexts", max_contexts, 1, 2**30)
        self.max_concepts = check_size("max_concepts", max_concepts, 2)
        self.relations: list[str] = []
        self.model = state.new_model()
        self._number: dict[Any, int] = {NOTHING: 0}
        is_free = exploration == "order_free"
        self._settings = search.Settings(self.window, is_free, self.C, self.max_contexts)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that tests run with."""
        yield {}
        yield {"exploration": "left_to_right", "averaged": False, "window": 3, "C": 1.0}

    # Learning

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one sentence.

        Parameters
        ----------
        x
            A pair (sentence, universe). The sentence is a list of words. The universe is a dict of
            relations, {name: {concept: concept}}; its key "concepts", if it is there, lists the
            concepts that exist, else all that were met exist. A concept is a text of at most 1,000
            characters, a number (whole ones of at most 256 bits) or a boolean. A sentence has at
            most 2,000 words.
        y
            The concepts: a list, one for each word, "-" for a word that means nothing. Or a bag of
            them, if it is not known which word means which: a `collections.Counter`, or a set;
            words for which it has none mean nothing.

        Raises
        ------
        FeatureError, LabelError
            The example cannot be used; the model has not changed.
        ModelBusyError
            The caller is inside another call of this model: see `Learner.learn_one`.

        """
        self._learn(*self._read([x], [y]))

    def learn_many(self, X: Iterable[Any], y: Iterable[Any]) -> None:
        """Learn sentences in order: the same model as by `learn_one`.

        Parameters
        ----------
        X
            Pairs as in `learn_one`.
        y
            Concepts as in `learn_one`, for each of them.

        Raises
        ------
        FeatureError, LabelError
            An example cannot be used; the model has not changed.
        ModelBusyError
            As for `learn_one`.

        """
        self._learn(*self._read(X, y))

    def _read(self, X: Any, y: Any) -> tuple[list[GroundedSentence], list[ConceptTarget]]:
        told = [read_told(x) for x in batch_rows(X, FeatureError)]
        labels = batch_rows(y, LabelError)
        if len(told) != len(labels):
            raise LabelError(f"concepts of {len(labels)} sentences, for {len(told)} sentences")
        return told, [read_meant(c, t.words.size) for c, t in zip(labels, told, strict=True)]

    def _check_room(
        self, examples: Sequence[GroundedSentence], labels: Sequence[ConceptTarget]
    ) -> None:
        known, new, relations = self._number, set[Any](), set(self.relations)
        for t, m in zip(examples, labels, strict=True):
            new.update(t.new_concepts(known), m.new_concepts(known))
            relations |= t.tables.keys()
        n = len(known) + len(new)
        if self.max_concepts is not None and n > self.max_concepts:
            raise LabelError(
                f"{n} concepts, but max_concepts={self.max_concepts}: raise it, "
                "or leave tables out whose values never recur, such as times"
            )
        if len(relations) > search.MOST_RELATIONS:
            raise FeatureError(f"{len(relations)} relations: use up to {search.MOST_RELATIONS}")

    def _learn_next(self, example: GroundedSentence, label: ConceptTarget) -> None:
        told, meant = example, label
        for concept in (*told.new_concepts(self._number), *meant.concepts):
            self._number.setdefault(concept, len(self._number))
        self.relations += [name for name in told.tables if name not in self.relations]
        _, arrays = as_arrays(told, meant, self._number, self.relations)
        sentence, n = search.Sentence(*arrays), told.words.size
        self._make_room(0, n if meant.is_bag else 0)
        found, settings = search.new_search(sentence, self.window, True), self._settings
        search.start(self.model, sentence, settings, 0.0, found)
        if meant.is_bag:
            step.align(self.model, sentence, settings, found)
        while not step.learn(self.model, sentence, settings, found):
            self._make_room(1, 0)

    def _make_room(self, steps: int, n_words: int) -> None:
        """Make room for all concepts and relations, contexts of steps, and words of bags."""
        model, wide = self.model, 2 * self.window + 1
        of_words = 2 * steps * wide * (2 * len(self.relations) + 2)
        columns, pairs = max(2, len(self._number)), (len(self.relations) + 1) ** 2
        most = self.max_contexts
        self.model = model._replace(
            concepts=state.grown(model.concepts, of_words, columns, most),
            links=state.grown(model.links, 2 * steps * wide * wide, pairs, most),
            meanings=state.grown(model.meanings, n_words, columns, most),
        )

    # Predicting

    def predict_one(self, x: Any) -> list[Any]:
        """Return the concept of each word.

        Parameters
        ----------
        x
            A pair as in `learn_one`. Words, concepts and relations that were never learnt may
            occur: a new concept is found by its relations, but not by its name; a new relation,
            such as one that is misspelt, is ignored.

        Returns
        -------
        A concept for each word, "-" for none.

        Raises
        ------
        FeatureError
            The example cannot be used.

        """
        return self.predict_many([x])[0]

    @guarded
    def predict_many(self, X: Iterable[Any]) -> list[list[Any]]:
        """Return the concepts of the words of sentences.

        Parameters
        ----------
        X
            Pairs as in `learn_one`.

        Returns
        -------
        A list of concepts for each.

        Raises
        ------
        FeatureError
            An example cannot be used.

        """
        told = [read_told(x) for x in X]
        return [self._predict_next(t) for t in told]

    @guarded
    def scores_one(self, x: Any) -> list[dict[Any, float]]:
        """Return for each word the scores of concepts when it was labelled; `x` as in `learn_one`.

        The highest one is predicted, of equal ones the first.
        """
        told = read_told(x)
        candidates, found = self._searched(told)
        return [dict(zip(candidates, row, strict=True)) for row in found.scores.tolist()]

    def _predict_next(self, example: GroundedSentence) -> list[Any]:
        candidates, found = self._searched(example)
        return [candidates[k] for k in found.label.tolist()]

    def _searched(self, told: GroundedSentence) -> tuple[list[Any], search.Search]:
        """Return the candidates, and the search that gave each word one of them."""
        number = self._number
        if new := told.new_concepts(number):
            # They have no weights, but relations.
            number = dict(number)
            for concept in new:
                number.setdefault(concept, len(number))
        candidates, arrays = as_arrays(told, None, number, self.relations)
        sentence = search.Sentence(*arrays)
        found = search.new_search(sentence, self.window, False)
        mean = 1.0 / self.n_examples if self.averaged and self.n_examples else 0.0
        search.predict(self.model, sentence, self._settings, mean, found)
        return candidates, found

    def _compared(self, label: ConceptTarget, predicted: list[Any]) -> tuple[list[Any], list[Any]]:
        return judged(label, predicted), predicted

    def rehearse(self) -> None:
        """Learn and predict made-up sentences, so that all that is needed is compiled."""
        fed = [("cat", "dog", "hen")[i % 3] for i in range(12)]
        where = {"cat": "hall", "dog": "yard", "hen": "hall", "Ann": "hall", "Bea": "yard"}
        world = {"location": where, "owner": {"cat": "Ann"}}
        X = [(["she", "feeds", "the", name], world) for name in fed]
        y: list[Any] = [["Ann" if i % 3 else "Bea", "feed", "-", fed[i]] for i in range(12)]
        # Bags are aligned by other code.
        y[6:] = [Counter(concepts) for concepts in y[6:]]
        self.learn_many(X, y)
        self.predict_many(X)
        self._save_and_load().learn_many(X, y)

    # What was learnt

    @property
    def classes(self) -> list[Any]:
        """The concepts met, "-" first."""
        return list(self._number)

    @property
    def n_examples(self) -> int:
        """Sentences learnt."""
        return int(self.model.info[0].n_sentences)

    @property
    def n_words(self) -> int:
        """Words learnt."""
        return int(self.model.info[0].n_words)

    @property
    def n_wrong(self) -> int:
        """Sentences in which a choice was wrong before they were learnt."""
        return int(self.model.info[0].n_wrong)

    @property
    def n_ignored_contexts(self) -> int:
        """How often contexts got no weights, as there were `max_contexts` of their kind."""
        return int(self.model.info[0].n_ignored)

    @property
    def dual(self) -> float:
        """The dual objective that the steps reached."""
        return float(self.model.info[0].dual)

    @property
    def figures(self) -> dict[str, Any]:
        """Numbers of words, concepts, relations, wrong sentences and steps; the dual objective."""
        found = {"n_words": self.n_words, "n_concepts": len(self._number)}
        found |= {"n_relations": len(self.relations), "n_wrong": self.n_wrong}
        return found | {"n_steps": int(self.model.info[0].n_steps), "dual": self.dual}

    @property
    def memory_usage(self) -> int:
        """Bytes of all arrays."""
        tables = (self.model.concepts, self.model.links, self.model.meanings)
        return sum(array.nbytes for table in tables for array in (*table.rows, *table[1:]))

    # Files

    def as_file(self) -> Content:
        """Return what was learnt as JSON values and arrays; the caller holds the lock."""
        content: dict[str, Any] = {"concepts": [as_json(c, "the concept") for c in self._number]}
        content["relations"] = list(self.relations)
        content["info"] = state.INFO.as_json(self.model.info)
        arrays = {}
        for name in _TABLES:
            table = getattr(self.model, name)
            n = vocabulary.size(table.rows)
            arrays[f"{name}_keys"] = vocabulary.keys_of(table.rows, n)
            arrays[f"{name}_weights"] = table.weights[:n]
            if name in _WEIGHTED:
                arrays[f"{name}_late"] = table.late[:n]
        return content, arrays

    def read_file(self, content: dict[str, Any], arrays: NamedArrays) -> None:
        """Set what `as_file` returned; raise ValueError if it cannot be."""
        concepts = distinct(content.get("concepts"), "concepts")
        self.relations = distinct(content.get("relations"), "relations")
        if concepts[:1] != [NOTHING] or None in concepts:
            raise ValueError("concepts: the first is not '-', or one is null")
        if len(concepts) > (self.max_concepts or len(concepts)):
            raise ValueError("there are more concepts than max_concepts")
        if len(self.relations) > search.MOST_RELATIONS or not all(
            isinstance(name, str) for name in self.relations
        ):
            raise ValueError("relations: there are too many, or one is no string")
        self._number = {concept: k for k, concept in enumerate(concepts)}
        tables = {name: _table(name, arrays, self.max_contexts) for name in _TABLES}
        self.model = state.new_model()._replace(**tables)
        for name, value in state.INFO.checked("info", content.get("info"), {}).items():
            self.model.info[0][name] = value
        self._make_room(0, 0)


def _table(name: str, arrays: NamedArrays, most: int) -> state.Table:
    """Return a table from a file."""
    columns, is_weighted = arrays.length_of(f"{name}_weights", 1), name in _WEIGHTED
    if columns < 2:
        raise ValueError(f"{name}: there are too few columns")
    rows = vocabulary.from_file(f"{name}_keys", arrays, most)
    n, table = vocabulary.size(rows), state.new_table(rows, columns, is_weighted)
    wanted = Field((n, columns), range=FINITE if is_weighted else NOT_NEGATIVE)
    table.weights[:n] = arrays.take(f"{name}_weights", wanted, {})
    if is_weighted:
        table.late[:n] = arrays.take(f"{name}_late", wanted, {})
    return table


register_learner(
    ConceptLabeler, "concepts",
    more=ConceptLabeler.as_file, read_more=ConceptLabeler.read_file, is_compressed=True,
)  # fmt: skip
