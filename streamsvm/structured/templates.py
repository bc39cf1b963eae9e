"""Feature templates: which columns of which neighbours of a token make a feature together.

A template is a list of parts (row, column): the column of the token `row` places further. Its
features are the texts that it finds there, joined. CRF++ writes it as ``U02:%x[-1,0]/%x[0,0]``; the
format is read by `read_templates`. Beyond the ends of a sentence the text says how far.

The key of a feature is a mix of the key of its template and of those of its texts: no text is put
together.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled, compiled_within
from streamsvm.errors import ParameterError
from streamsvm.structured.sentences import key_of

_MACRO = re.compile(r"%x\[\s*(-?\d{1,9})\s*,\s*([^\],\s]+)\s*\]")
_FURTHEST = 100

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_HALF = np.uint64(32)


class Template(NamedTuple):
    """One template: the same name makes different features from the same texts."""

    name: str
    parts: tuple[tuple[int, str], ...]
    """(row, column): columns have names; those of lists are "0", "1", ..."""


def read_templates(text: str, names: Sequence[str] = ()) -> list[Template]:
    """Return the templates of a text in the format of CRF++.

    It has a line for each template, such as ``U05:%x[-1,0]/%x[0,0]``; # begins a comment line. A
    column may be a name. A line ``B`` is read and ignored: the labels before a token are the
    learner's parameter `order`. `names` are those of the columns, if they are known: 0 is then the
    first. ParameterError: a line is of another form.
    """
    found = []
    named = {str(i): name for i, name in enumerate(names) if str(i) not in names}
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#") or line == "B":
            continue
        parts = [(int(row), named.get(column, column)) for row, column in _MACRO.findall(line)]
        rest = _MACRO.sub("", line)
        if not line.startswith("U") or "%" in rest or any(abs(r) > _FURTHEST for r, _ in parts):
            raise ParameterError(
                f"template, line {number}: {line!r:.80}; use lines such as U01:%x[-1,0]/%x[0,0], "
                f"of rows up to {_FURTHEST} away, B, or comments that begin with #"
            )
        found.append(Template(line, tuple(parts)))
    if not found:
        raise ParameterError("template: there is no line that begins with U")
    return found


def windows(columns: Sequence[str], size: int, pairs: bool) -> list[Template]:
    """Return the templates of all tokens up to `size` places away, and of neighbouring pairs."""
    found = []
    for column in columns:
        for row in range(-size, size + 1):
            found.append(Template(f"{column}[{row}]", ((row, column),)))
        for row in range(-size, size if pairs else -size):
            name = f"{column}[{row}]/[{row + 1}]"
            found.append(Template(name, ((row, column), (row + 1, column))))
    return found


class CompiledTemplates(NamedTuple):
    """Templates as arrays; parts start[m] .. start[m + 1] - 1 are those of template m."""

    seed: np.ndarray  # uint64 (templates,): the keys of the names
    start: np.ndarray  # int64 (templates + 1,)
    row: np.ndarray  # int64 (parts,)
    column: np.ndarray  # int64 (parts,)


OUTSIDE = np.array(
    [
        *(key_of(f"_B-{n}") for n in range(1, _FURTHEST + 1)),
        *(key_of(f"_B+{n}") for n in range(1, _FURTHEST + 1)),
    ],
    np.uint64,
)
"""The keys of what lies 1, 2, ... places before a sentence, and then after it."""


def compile_templates(templates: Sequence[Template], columns: Sequence[str]) -> CompiledTemplates:
    """Return templates as arrays, for columns in this order.

    ParameterError: one names a column that there is not.
    """
    places = {name: i for i, name in enumerate(columns)}
    for template in templates:
        for _, column in template.parts:
            if column not in places:
                raise ParameterError(
                    f"template {template.name!r}: there is no column {column!r:.40}; "
                    f"the tokens have {', '.join(map(repr, columns)) or 'none'}"
                )
    parts = [part for template in templates for part in template.parts]
    lengths = [len(template.parts) for template in templates]
    return CompiledTemplates(
        np.array([key_of(template.name) for template in templates], np.uint64),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.array([row for row, _ in parts], np.int64),
        np.array([places[column] for _, column in parts], np.int64),
    )


@compiled_within
def mixed(key, part):
    """Return a key that depends on both, in their order."""
    key = (key ^ part) * _GOLDEN
    key ^= key >> _HALF
    key *= _MIX
    return key ^ (key >> _HALF)


@compiled
def apply(templates, columns, first, outside, keys):
    """Set the keys of the features of all tokens, uint64 (tokens, templates).

    `templates` are `CompiledTemplates`; `columns`, uint64 (columns, tokens), are the keys of the
    texts; `first`, int64 (sentences + 1,), has the first token of each sentence; `outside` is
    `OUTSIDE`.
    """
    far = outside.size // 2
    for i in range(first.size - 1):
        begin, stop = first[i], first[i + 1]
        for t in range(begin, stop):
            for m in range(templates.seed.size):
                key = templates.seed[m]
                for p in range(templates.start[m], templates.start[m + 1]):
                    at = t + templates.row[p]
                    if at < begin:
                        part = outside[begin - at - 1]
                    elif at >= stop:
                        part = outside[far + at - stop]
                    else:
                        part = columns[templates.column[p], at]
                    key = mixed(key, part)
                keys[t, m] = key


def features_of(templates: CompiledTemplates, columns: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return the keys of the features of all tokens, uint64 (tokens, templates)."""
    keys = np.empty((columns.shape[1], templates.seed.size), np.uint64)
    apply(templates, columns, first, OUTSIDE, keys)
    return keys
