"""What a sentence is predicted to say: symbols, roles, and meanings put together from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from streamsvm.structured.parser.meanings import Meaning
from streamsvm.structured.parser.parser import Frame, Parser, keys_of

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


def parse_of(parser: Parser, sentence: list[str]) -> Parse:
    """Return what a sentence is predicted to say; the caller holds the lock."""
    keys = keys_of(sentence)
    scores = parser.scores(keys)
    labels = scores.argmax(axis=1).tolist()
    frames = parser.frames(keys, scores)
    chosen = _chosen(frames, parser, set(labels))
    names, inner = parser.grammar.names, {frame.place: frame for frame in reversed(chosen)}
    meanings = [_composed(frame, parser, inner, ()) for frame in chosen]
    others = [frame.score for frame in frames if frame is not chosen[0]] if chosen else []
    return Parse(
        [None if label == 0 else names[label] for label in labels],
        [_roles(frame, len(sentence)) for frame in chosen],
        meanings[0] if meanings else None,
        meanings,
        chosen[0].score - max([0.0, *others[:1]]) if chosen else 0.0,
    )


def scores_of(parser: Parser, sentence: list[str]) -> dict[Meaning, float]:
    """Return all meanings of a sentence, the surest first; the caller holds the lock."""
    keys = keys_of(sentence)
    frames = parser.frames(keys, parser.scores(keys))
    return {_composed(frame, parser, {}, ()): frame.score for frame in frames}


def _chosen(frames: list[Frame], parser: Parser, labels: set[int]) -> list[Frame]:
    """Return the surest frame, if anything speaks for it, and one of each relation labelled."""
    found: dict[int, Frame] = {}
    for i, frame in enumerate(frames):
        symbol = parser.grammar.relations[frame.relation]
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
    frame: Frame, parser: Parser, inner: Mapping[int, Frame], outer: tuple[int, ...]
) -> Meaning:
    """Return the meaning of a frame; an argument at the place of another one is that one's."""
    grammar = parser.grammar
    found: list[Any] = [grammar.names[grammar.relations[frame.relation]]]
    for word, symbol in zip(frame.words, frame.symbols, strict=True):
        other = inner.get(word)
        is_inner = other is not None and grammar.relations[other.relation] == symbol
        if other is not None and is_inner and word not in (*outer, frame.place):
            found.append(_composed(other, parser, inner, (*outer, frame.place)))
        else:
            found.append(grammar.names[symbol])
    return tuple(found)
