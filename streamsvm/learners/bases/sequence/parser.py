"""OSPAS: three rankings that together parse sentences: of symbols, of roles, and of relations.

Symbols of words are learnt by Algorithm 24, roles by Algorithm 23 for each relation among the
candidates. The third one ranks the relations by all words of a sentence, also by Algorithm 23: it
says which of several meanings that can be put together is meant. A constant feature takes up how
often a relation is among the candidates whatever is said; predictions leave it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamsvm.learners.bases.sequence.grammar import Grammar
from streamsvm.solvers.ospas.algorithm_24 import learn_sentence
from streamsvm.solvers.ospas.ranking import Ranking, tokens_of
from streamsvm.solvers.ospas.roles import assign, places_of, role_keys, width_of
from streamsvm.structured.meanings import Meaning, bag_of, frames_of
from streamsvm.structured.sentences import TEXT_KEYS, Sentences, key_of
from streamsvm.structured.templates import OUTSIDE, Template, compile_templates, features_of
from streamsvm.structured.vocabulary import size
from streamsvm.support.draws import new_draws
from streamsvm.support.rows import SparseRows

_PAIRS = compile_templates(
    [
        Template("word", ((0, "0"),)),
        Template("pair", ((-1, "0"), (0, "0"))),
        Template("pair", ((0, "0"), (1, "0"))),
    ],
    ["0"],
)
"""Words and pairs of neighbours, the ends of a sentence too."""

_CONSTANT = np.array([key_of("constant")], np.uint64)


class Frame(NamedTuple):
    """A relation at a word, with the words and the symbols of its arguments."""

    score: float
    relation: int
    place: int
    words: tuple[int, ...]
    symbols: tuple[int, ...]


class Parser:
    """The rankings and what is known of symbols; parameters as of `OSPASParser`."""

    def __init__(
        self,
        C: float,
        exploration: int,
        windows: tuple[int, int],
        is_averaged: bool,
        max_features: int,
        seed: int | None,
    ) -> None:
        self.C, self.exploration, self.max_features = C, exploration, max_features
        self.role_window = windows[1]
        sequences = [tuple((-k, "0") for k in range(d, -1, -1)) for d in range(windows[0] + 1)]
        templates = [Template(f"words[-{d}]", parts) for d, parts in enumerate(sequences)]
        self._templates = compile_templates(templates, ["0"])
        self.grammar = Grammar()
        self.symbols, self.roles, self.relations = (Ranking(is_averaged) for _ in range(3))
        self.draws = new_draws(seed)
        self.n_examples = self.n_words = 0

    @property
    def rankings(self) -> dict[str, Ranking]:
        """The three rankings by name."""
        return {"symbols": self.symbols, "roles": self.roles, "relations": self.relations}

    # Features

    def _tokens(self, words: np.ndarray) -> Sentences:
        """Return the features of words, of their keys, for their symbols."""
        first = np.array([0, words.size])
        return tokens_of(features_of(self._templates, words[None], first))

    def _whole(self, words: np.ndarray, *more: np.ndarray) -> Sentences:
        """Return a sentence as one token: its words and pairs, each once."""
        keys = features_of(_PAIRS, words[None], np.array([0, words.size]))
        return tokens_of(np.concatenate([np.unique(keys), *more])[None])

    # Learning

    def learn(self, given: Sequence[str], candidates: Sequence[Meaning | str]) -> None:
        """Learn a sentence; without words or candidates there is nothing to learn."""
        self.n_examples += 1
        if not given or not candidates:
            return
        self.n_words += len(given)
        words, grammar = keys_of(given), self.grammar
        bag, n_empty = bag_of(candidates, len(given))
        grammar.enter_symbols(bag)
        n_symbols = grammar.n_symbols
        counts = np.zeros(n_symbols, np.int64)
        for name, n in bag.items():
            counts[grammar.numbers[name]] = n
        counts[0] = n_empty
        frames = [
            f for meaning in candidates if meaning.__class__ is tuple for f in frames_of(meaning)
        ]
        for frame in frames:
            grammar.enter_frame(frame)
        model = self.symbols
        rows = model.learnt_rows(self._tokens(words), self.max_features)
        learn_sentence(
            *model.arrays(rows, n_symbols),
            float(self.n_examples),
            rows,
            counts,
            n_symbols,
            self.C,
            self.exploration,
            self.draws,
            np.empty(words.size, np.int64),
            model.sums,
        )
        if frames:
            self._learn_relations(words, frames)
            self._learn_roles(words, rows, frames)

    def _learn_relations(self, words: np.ndarray, frames: list[tuple[str, ...]]) -> None:
        """Learn which relations a sentence may be about."""
        grammar = self.grammar
        n = len(grammar.relations)
        bags = np.zeros((1, n), np.bool_)
        bags[0, [grammar.number_of(frame) for frame in frames]] = True
        rows = self.relations.learnt_rows(self._whole(words, _CONSTANT), self.max_features)
        self.relations.learn(rows, bags, float(self.n_examples), self.C)

    def _learn_roles(
        self, words: np.ndarray, rows: SparseRows, frames: list[tuple[str, ...]]
    ) -> None:
        """Learn the roles of all words for each relation of the candidates."""
        grammar = self.grammar
        numbered = [(grammar.number_of(frame), frame[1:]) for frame in frames if len(frame) > 1]
        relations = sorted({relation for relation, _ in numbered})
        if not relations:
            return
        scores = self.symbols.scores(rows, grammar.n_symbols, None)
        keys, symbol, _ = self._role_features(words, scores, np.array(relations))
        bags = np.zeros((*symbol.shape, grammar.n_roles + 1), np.bool_)
        for relation, arguments in numbered:
            q = relations.index(relation)
            for role, argument in enumerate(arguments):
                bags[q, symbol[q] == grammar.numbers[argument], role + 1] = True
        bags[~bags.any(axis=2), 0] = True
        is_used = symbol >= 0
        found = self.roles.learnt_rows(tokens_of(keys[is_used]), self.max_features)
        self.roles.learn(found, bags[is_used], float(self.n_examples), self.C)

    def _role_features(
        self, words: np.ndarray, scores: np.ndarray, relations: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return keys (relations, words, width), symbols (relations, words) and places."""
        grammar, n = self.grammar, words.size
        symbols = np.array(grammar.relations)[relations]
        place = np.empty(relations.size, np.int64)
        symbol = np.empty((relations.size, n), np.int64)
        is_argument, kinds = grammar.is_argument()[relations], grammar.kinds()
        places_of(scores, symbols, is_argument, place, symbol)
        keys = np.zeros((relations.size, n, width_of(self.role_window)), np.uint64)
        labels = scores.argmax(axis=1)
        for q in range(relations.size):
            role_keys(
                words, labels, kinds, OUTSIDE, relations[q], symbols[q], place[q], symbol[q],
                self.role_window, keys[q],
            )  # fmt: skip
        return keys, symbol, place

    # Predicting

    def scores(self, words: np.ndarray) -> np.ndarray:
        """Return the scores of symbols, float64 (words, symbols), for words given by keys."""
        rows = self.symbols.known_rows(self._tokens(words))
        return self.symbols.scores(rows, self.grammar.n_symbols, self.n_examples)

    def scores_of_many(self, words: np.ndarray, first: np.ndarray) -> np.ndarray:
        """Return the scores of the words of several sentences, which begin at `first`."""
        tokens = tokens_of(features_of(self._templates, words[None], first))
        rows = self.symbols.known_rows(tokens)
        return self.symbols.scores(rows, self.grammar.n_symbols, self.n_examples)

    def frames(self, words: np.ndarray, scores: np.ndarray) -> list[Frame]:
        """Return all meanings that can be put together from a sentence, the surest first."""
        grammar = self.grammar
        n = len(grammar.relations)
        if not n or not words.size or not size(self.relations.vocabulary):
            return []
        rows = self.relations.known_rows(self._whole(words))
        sure = self.relations.scores(rows, n, self.n_examples)[0]
        keys, symbol, place = self._role_features(words, scores, np.arange(n))
        found, n_roles, allowed = [], grammar.n_roles + 1, grammar.allowed()
        roles = self.roles.scores(
            self.roles.known_rows(tokens_of(keys.reshape(-1, keys.shape[2]))),
            n_roles,
            self.n_examples,
        ).reshape(n, words.size, n_roles)
        arities = grammar.arities[:n]
        for q, arity in enumerate(arities):
            at = np.empty(arity, np.int64)
            total = assign(scores, roles[q], symbol[q], allowed[q], arity, at, sure[q])
            if total > -np.inf:
                chosen = tuple(symbol[q, at].tolist())
                found.append(Frame(total, q, int(place[q]), tuple(at.tolist()), chosen))
        return sorted(found, key=lambda frame: -frame.score)

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays."""
        return self.grammar.seen.nbytes + sum(m.n_bytes for m in self.rankings.values())


def keys_of(words: Sequence[str]) -> np.ndarray:
    """Return the keys of words, uint64 (words,)."""
    return np.fromiter(map(TEXT_KEYS.__getitem__, words), np.uint64, len(words))
