"""OSPAS: three rankings that together parse sentences: of symbols, of roles, and of relations.

Symbols of words are learnt by Algorithm 24, roles by Algorithm 23 for each relation among the
candidates. The third one ranks the relations by all words of a sentence, also by Algorithm 23: it
says which of several meanings that can be put together is meant. A constant feature takes up how
often a relation is among the candidates whatever is said; predictions leave it out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.model_files.json_values import Content
from streamsvm.structured.parser.algorithm_24 import learn_sentence
from streamsvm.structured.parser.grammar import Grammar
from streamsvm.structured.parser.meanings import Meaning, bag_of, frames_of
from streamsvm.structured.parser.ranking import Ranking, tokens_of
from streamsvm.structured.parser.roles import assign, places_of, role_keys, width_of
from streamsvm.structured.sentences import TEXT_KEYS, Sentences, key_of
from streamsvm.structured.templates import OUTSIDE, Template, compile_templates, features_of
from streamsvm.structured.vocabulary import size
from streamsvm.support.declaration import DRAWS, NamedArrays, as_int
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


UNNAMED = 0.1
"""The least score, of the margin 1 that is learnt, of a meaning that no word is a symbol of."""


class Parse(NamedTuple):
    """What a sentence is predicted to say."""

    symbols: list[str | None]
    """The symbol of each word; None where it has none."""
    roles: list[list[str | None]]
    """For each of `meanings` the role of each word: "REL", "A0", "A1", ...; or None."""
    meaning: Meaning | None
    """The surest meaning, a tuple (relation, arguments...); None if none can be put together, or
    nothing speaks for it: no word has one of its symbols, and hardly any was met with it."""
    meanings: list[Meaning]
    """The surest meaning, and those of the other relations that words were labelled with."""
    score: float
    """How sure `meaning` is: by how much its score is above that of the next one, and above 0,
    that of a meaning of which nothing is known; 1 is the margin that is learnt. 0 without one."""


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
        self.grammar = Grammar.empty()
        self.symbols, self.roles, self.relations = (Ranking(is_averaged) for _ in range(3))
        self.draws = new_draws(seed)
        self.n_examples = self.n_words = 0

    @property
    def rankings(self) -> dict[str, Ranking]:
        """The three rankings by name."""
        return {"symbols": self.symbols, "roles": self.roles, "relations": self.relations}

    @property
    def n_labels(self) -> dict[str, int]:
        """How many labels the rankings have."""
        grammar = self.grammar
        n_roles, n_relations = grammar.n_roles + 1, len(grammar.relations)
        return {"symbols": grammar.n_symbols, "roles": n_roles, "relations": n_relations}

    # Features

    def _tokens(self, words: np.ndarray, first: np.ndarray | None = None) -> Sentences:
        """Return the features of words, of their keys, for their symbols."""
        first = np.array([0, words.size]) if first is None else first
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
        words, (bag, n_empty) = keys_of(given), bag_of(candidates, len(given))
        frames = [
            f for meaning in candidates if isinstance(meaning, tuple) for f in frames_of(meaning)
        ]
        self.grammar = grammar = self.grammar.including(bag, frames)
        n_symbols = grammar.n_symbols
        counts = np.zeros(n_symbols, np.int64)
        for name, n in bag.items():
            counts[grammar.numbers[name]] = n
        counts[0] = n_empty
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
        places_of(scores, symbols, grammar.is_argument[relations], place, symbol)
        keys = np.zeros((relations.size, n, width_of(self.role_window)), np.uint64)
        labels = scores.argmax(axis=1)
        for q in range(relations.size):
            role_keys(
                words, labels, grammar.kinds, OUTSIDE, relations[q], symbols[q], place[q],
                symbol[q], self.role_window, keys[q],
            )  # fmt: skip
        return keys, symbol, place

    # Predicting

    def scores(self, words: np.ndarray, first: np.ndarray | None = None) -> np.ndarray:
        """Return the scores of symbols, float64 (words, symbols), for words given by keys.

        They are those of one sentence, or of several, which begin at `first`.
        """
        rows = self.symbols.known_rows(self._tokens(words, first))
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
        found, n_roles = [], grammar.n_roles + 1
        roles = self.roles.scores(
            self.roles.known_rows(tokens_of(keys.reshape(-1, keys.shape[2]))),
            n_roles,
            self.n_examples,
        ).reshape(n, words.size, n_roles)
        for q, arity in enumerate(grammar.arities):
            at = np.empty(arity, np.int64)
            total = assign(scores, roles[q], symbol[q], grammar.allowed[q], arity, at, sure[q])
            if total > -np.inf:
                chosen = tuple(symbol[q, at].tolist())
                found.append(Frame(total, q, int(place[q]), tuple(at.tolist()), chosen))
        return sorted(found, key=lambda frame: -frame.score)

    def parse(self, sentence: Sequence[str]) -> Parse:
        """Return what a sentence is predicted to say."""
        keys = keys_of(sentence)
        scores = self.scores(keys)
        labels = scores.argmax(axis=1).tolist()
        frames = self.frames(keys, scores)
        chosen = _chosen(frames, self.grammar, set(labels))
        names, inner = self.grammar.names, {frame.place: frame for frame in reversed(chosen)}
        meanings = [_composed(frame, self.grammar, inner, ()) for frame in chosen]
        others = [frame.score for frame in frames if frame is not chosen[0]] if chosen else []
        return Parse(
            [None if label == 0 else names[label] for label in labels],
            [_roles(frame, len(sentence)) for frame in chosen],
            meanings[0] if meanings else None,
            meanings,
            chosen[0].score - max([0.0, *others[:1]]) if chosen else 0.0,
        )

    def meanings(self, sentence: Sequence[str]) -> dict[Meaning, float]:
        """Return all meanings of a sentence, the surest first."""
        keys = keys_of(sentence)
        frames = self.frames(keys, self.scores(keys))
        return {_composed(frame, self.grammar, {}, ()): frame.score for frame in frames}

    # Files

    def as_file(self) -> Content:
        """Return the content of a file beside the parameters."""
        content, arrays = self.grammar.as_file()
        content |= {"n_examples": self.n_examples, "n_words": self.n_words}
        arrays["draws"] = self.draws
        for name, model in self.rankings.items():
            own = model.as_file(self.n_labels[name])
            arrays |= {f"{name}_{part}": array for part, array in own.items()}
            content[f"n_ignored_{name}"] = int(model.vocabulary.counts[1])
        return content, arrays

    def read_file(self, content: dict[str, Any], arrays: NamedArrays, max_symbols: int) -> None:
        """Set on a new parser what `as_file` returned; ValueError if it does not hold together."""
        self.n_examples = as_int("n_examples", content.get("n_examples"), 0)
        self.n_words = as_int("n_words", content.get("n_words"), 0)
        self.grammar = Grammar.from_file(content, arrays, max_symbols)
        self.draws[:] = arrays.take("draws", DRAWS, {})
        for name, model in self.rankings.items():
            n_ignored = content.get(f"n_ignored_{name}")
            model.read_file(name, arrays, self.n_labels[name], self.max_features, n_ignored)

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays."""
        return self.grammar.seen.nbytes + sum(m.n_bytes for m in self.rankings.values())


def keys_of(words: Sequence[str]) -> np.ndarray:
    """Return the keys of words, uint64 (words,)."""
    return np.fromiter(map(TEXT_KEYS.__getitem__, words), np.uint64, len(words))


def _chosen(frames: list[Frame], grammar: Grammar, labels: set[int]) -> list[Frame]:
    """Return the surest frame, if anything speaks for it, and one of each relation labelled."""
    found: dict[int, Frame] = {}
    for i, frame in enumerate(frames):
        symbol = grammar.relations[frame.relation]
        is_surest = i == 0 and (frame.score > UNNAMED or not labels.isdisjoint(frame.symbols))
        if is_surest or symbol in labels:
            # With another number of arguments a relation may be there again.
            found.setdefault(symbol, frame)
    return list(found.values())


def _roles(frame: Frame, n: int) -> list[str | None]:
    """Return the role of each of n words in a frame."""
    found: list[str | None] = [None] * n
    found[frame.place] = "REL"
    for role, word in enumerate(frame.words):
        found[word] = f"A{role}"
    return found


def _composed(
    frame: Frame, grammar: Grammar, inner: Mapping[int, Frame], outer: tuple[int, ...]
) -> Meaning:
    """Return the meaning of a frame; an argument at the place of another one is that one's."""
    found: list[Any] = [grammar.names[grammar.relations[frame.relation]]]
    for word, symbol in zip(frame.words, frame.symbols, strict=True):
        other = inner.get(word)
        is_inner = other is not None and grammar.relations[other.relation] == symbol
        if other is not None and is_inner and word not in (*outer, frame.place):
            found.append(_composed(other, grammar, inner, (*outer, frame.place)))
        else:
            found.append(grammar.names[symbol])
    return tuple(found)
