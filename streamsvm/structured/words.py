"""What a text is made into besides itself: its shape, its beginnings and ends, its n-grams."""

from __future__ import annotations

from typing import Any

from streamsvm.structured.sentences import TEXT_KEYS

_MOST = 2**17


def shape_of(text: str) -> str:
    """Return the shape of a text: runs of capitals, of lower case and of digits as A, a and 0."""
    runs: list[str] = []
    for letter in text:
        if letter.isupper():
            kind = "A"
        elif letter.isalpha():
            kind = "a"
        else:
            kind = "0" if letter.isdigit() else letter
        if not runs or runs[-1] != kind:
            runs.append(kind)
    return "".join(runs)


def pieces_of(text: str, affixes: int, ngrams: int) -> list[str]:
    """Return the features of a text that are about its letters.

    `affixes`: the longest beginnings and ends; 0: none. `ngrams`: the length of n-grams, of the
    text between two marks for its ends; 0: none.
    """
    found = []
    for n in range(1, min(affixes, len(text)) + 1):
        found += [f"prefix={text[:n]}", f"suffix={text[-n:]}"]
    if ngrams:
        marked = f"^{text}$"
        grams = {marked[i : i + ngrams] for i in range(max(1, len(marked) - ngrams + 1))}
        found += [f"gram={gram}" for gram in sorted(grams)]
    return found


class PieceKeys(dict[str, Any]):
    """The keys of the pieces of words, see `pieces_of`; up to 131,072 words are kept."""

    def __init__(self, affixes: int, ngrams: int) -> None:
        super().__init__()
        self._how = affixes, ngrams

    def __missing__(self, text: str) -> tuple[int, ...]:
        keys = tuple(TEXT_KEYS[piece] for piece in pieces_of(text, *self._how))
        if len(self) >= _MOST:
            self.clear()
        self[text] = keys
        return keys


class ShapeKeys(dict[str, int]):
    """The keys of the shapes of words; up to 131,072 words are kept."""

    def __missing__(self, text: str) -> int:
        if len(self) >= _MOST:
            self.clear()
        key = self[text] = TEXT_KEYS[f"shape={shape_of(text)}"]
        return key
