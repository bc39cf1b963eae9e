"""What model files hold of a parser: symbols and relations, draws, and its three rankings."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.model_files.codec import LARGEST_COUNT, Content
from streamsvm.model_files.json_values import checked
from streamsvm.structured import vocabulary
from streamsvm.structured.parser.grammar import Grammar
from streamsvm.structured.parser.meanings import MOST_PARTS
from streamsvm.structured.words import NOTHING
from streamsvm.support.declaration import NOT_NEGATIVE, Field, NamedArrays, Range, as_int


def more(learner: Any) -> Content:
    """Return the content of a file beside the parameters."""
    parser = learner.parser
    grammar = parser.grammar
    n, k = len(grammar.relations), grammar.n_symbols
    content: dict[str, Any] = {
        "n_examples": parser.n_examples,
        "n_words": parser.n_words,
        "symbols": grammar.names[1:],
        "relations": grammar.relations,
        "arities": grammar.arities,
    }
    # Learning may have been interrupted before there was room for the last of them, here and below.
    grammar.make_room(grammar.n_roles)
    seen = grammar.seen[:n, : grammar.n_roles, :k]
    arrays = {"parser_draws": parser.draws, "parser_seen": seen.astype(np.uint8)}
    for name, model in parser.rankings.items():
        d, labels = model.n_features, _labels_of(name, grammar)
        model.grow(d, labels)
        arrays[f"{name}_keys"] = vocabulary.keys_of(model.vocabulary, d)
        arrays[f"{name}_weights"] = np.ascontiguousarray(model.weights[:d, :labels])
        arrays[f"{name}_sums"] = model.sums
        content[f"n_ignored_{name}"] = int(model.vocabulary.counts[1])
        if model.is_averaged:
            arrays[f"{name}_late"] = np.ascontiguousarray(model.late[:d, :labels])
    return content, arrays


def _labels_of(name: str, grammar: Grammar) -> int:
    """Return how many labels a ranking has."""
    sizes = {"roles": grammar.n_roles + 1, "relations": len(grammar.relations)}
    return sizes.get(name, grammar.n_symbols)


def read_more(learner: Any, content: dict[str, Any], arrays: NamedArrays) -> None:
    """Set on a new learner what `more` returned; ValueError if it does not hold together."""
    parser = learner.parser
    parser.n_examples = as_int("n_examples", content.get("n_examples"), 0, LARGEST_COUNT)
    parser.n_words = as_int("n_words", content.get("n_words"), 0, LARGEST_COUNT)
    grammar = parser.grammar
    _read_grammar(grammar, content, learner.max_symbols)
    shape = (len(grammar.relations), grammar.n_roles, grammar.n_symbols)
    found = arrays.take("parser_seen", Field(shape, np.uint8, range=Range(0, 1)), {})
    grammar.make_room(grammar.n_roles)
    for relation, role, symbol in zip(*np.nonzero(found), strict=True):
        grammar.enter_role(int(relation), int(role), int(symbol))
    parser.draws = arrays.take("parser_draws", Field((1,), np.uint64, range=Range(1)), {}).copy()
    for name, model in parser.rankings.items():
        d, labels = arrays.length_of(f"{name}_keys", 0), _labels_of(name, grammar)
        if d > learner.max_features:
            raise ValueError("there are more features than max_features")
        keys = arrays.take(f"{name}_keys", Field((d,), np.uint64, range=Range(0)), {})
        model.vocabulary = vocabulary.with_keys(keys)
        if model.n_features != d:
            raise ValueError(f"{name}_keys: two are equal")
        ignored = as_int("n_ignored", content.get(f"n_ignored_{name}"), 0, LARGEST_COUNT)
        model.vocabulary.counts[1] = ignored
        model.grow(d, labels)
        matrix = Field((d, labels), np.float64)
        model.weights[:d, :labels] = arrays.take(f"{name}_weights", matrix, {})
        if model.is_averaged:
            model.late[:d, :labels] = arrays.take(f"{name}_late", matrix, {})
        sums = Field((4,), np.float64, range=NOT_NEGATIVE)
        model.sums = arrays.take(f"{name}_sums", sums, {}).copy()


def _read_grammar(grammar: Grammar, content: dict[str, Any], most: int) -> None:
    """Set symbols, relations, and how many arguments these had."""
    names = checked(content.get("symbols"), list, "symbols")
    if len(names) > most or not all(isinstance(name, str) for name in names):
        raise ValueError("symbols: more than max_symbols, or one is no string")
    if len({NOTHING, *names}) <= len(names):
        raise ValueError("symbols: two are equal, or one is empty")
    grammar.enter_symbols(names)
    relations = checked(content.get("relations"), list, "relations")
    arities = checked(content.get("arities"), list, "arities")
    for symbol, arity in zip(relations, arities, strict=True):
        number = as_int("relations", symbol, 1, len(names))
        n = as_int("arities", arity, 0, MOST_PARTS - 1)
        grammar.relation_of[number, n] = len(grammar.relation_of)
    if len(grammar.relation_of) < len(relations):
        raise ValueError("relations: two are equal")
