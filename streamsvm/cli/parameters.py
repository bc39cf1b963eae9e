"""Command-line options of the parameters of registered learners: from signatures and docstrings."""

import argparse
import functools
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from streamsvm.cli.parser import Group, label_of
from streamsvm.learners.bases.registry import registered_learners

_SEE = re.compile(r"As in `(\w+)`")


class Parameter(NamedTuple):
    """A parameter of one or more learners."""

    name: str
    kinds: frozenset[type]  # types of values, without None
    texts: dict[str, str]  # descriptions by the learner's name


def parameters(without: tuple[str, ...]) -> list[Parameter]:
    """Return the parameters of all learners by name, in the order of their signatures.

    Those named in `without` are left out: their options are added by hand.
    """
    found: dict[str, Parameter] = {}
    for learner in registered_learners():
        hints, texts = typing.get_type_hints(vars(learner.cls)["__init__"]), texts_of(learner.cls)
        for name in inspect.signature(learner.cls).parameters:
            if name in without:
                continue
            new = Parameter(name, kinds_of(hints[name]), {})
            known = found.setdefault(name, new)
            found[name] = known._replace(kinds=known.kinds | new.kinds)
            known.texts[learner.name] = texts[name]
    return list(found.values())


def kinds_of(hint: Any) -> frozenset[type]:
    """Return the types that a resolved annotation allows, without None.

    >>> from streamsvm.cli.parameters import kinds_of
    >>> kinds_of(int | None) == {int}
    True
    """
    several = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    parts = typing.get_args(hint) if several else (hint,)
    return frozenset(typing.get_origin(part) or part for part in parts) - {type(None)}


@functools.cache
def texts_of(cls: type) -> Mapping[str, str]:
    """Return the descriptions in the numpydoc section "Parameters" of a class by name.

    A description "As in `Other`" is replaced by that of the class `Other`.
    """
    found: dict[str, str] = {}
    for names, text in _entries(inspect.getdoc(cls) or ""):
        for name in names:
            seen = _SEE.match(text)
            found[name] = texts_of(_class_of(seen.group(1)))[name] if seen else text
    return found


def _class_of(name: str) -> type:
    return next(learner.cls for learner in registered_learners() if learner.cls.__name__ == name)


def _entries(doc: str) -> list[tuple[list[str], str]]:
    """Return the names and the text of each entry of the section."""
    section = doc.partition("Parameters\n----------\n")[2]
    section = re.split(r"\n\n\w[\w ]*\n---", section)[0]
    entries = []
    for entry in re.split(r"\n(?=\S)", section):
        names, _, text = entry.partition("\n")
        entries.append((names.split(", "), " ".join(textwrap.dedent(text).split())))
    return entries


def add_options(group: Group, found: list[Parameter]) -> None:
    """Add an option for each parameter; the value of one that is not given is None."""
    for parameter in found:
        option = "--" + parameter.name.replace("_", "-")
        settings: dict[str, Any] = {"default": None, "help": _help_of(parameter)}
        if parameter.kinds == {bool}:
            settings["action"] = argparse.BooleanOptionalAction
        else:
            settings |= {"type": _reader_of(parameter.kinds), "metavar": _metavar(parameter)}
        group.add_argument(option, **settings)


def _help_of(parameter: Parameter) -> str:
    """Return the first sentence of each description, with the names of its learners."""
    by_text: dict[str, list[str]] = {}
    for learner, text in parameter.texts.items():
        first = re.split(r"(?<=[^.\d])\. ", text)[0].rstrip(".")
        by_text.setdefault(first, []).append(learner)
    return in_help(
        "; ".join(f"{', '.join(learners)}: {text}" for text, learners in by_text.items())
    )


def in_help(text: str) -> str:
    """Return a description from a docstring as the help of an option."""
    # What is a dict in Python is written otherwise on the command line.
    text = re.sub(r"a dict \{label: ([^}]*)\}", r"LABEL=FACTOR,... (\1)", text)
    return text.replace("``", "`").replace("%", "%%")


def _metavar(parameter: Parameter) -> str:
    if dict in parameter.kinds:
        return "LABEL=FACTOR,..."
    return "N" if parameter.kinds & {int, float} else "NAME"


def _weights(text: str) -> dict[Any, float]:
    """Return the factors of ``LABEL=FACTOR,...``; a label is its JSON value, or the text."""
    weights = {}
    for part in text.split(","):
        name, _, factor = part.rpartition("=")
        try:
            weights[label_of(name)] = float(factor)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{part!r}: use LABEL=FACTOR,...") from None
    return weights


def _reader_of(kinds: frozenset[type]) -> Callable[[str], Any]:
    """Return a function that turns text into a value of one of the types."""

    def read(text: str) -> Any:
        if bool in kinds and text.lower() in ("true", "false"):
            return text.lower() == "true"
        for kind in (int, float):
            if kind in kinds:
                try:
                    return kind(text)
                except ValueError:
                    continue
        # A word may be a value, too, such as balanced.
        if dict in kinds and not text.isidentifier():
            return _weights(text)
        if str in kinds:
            return text
        wanted = " or ".join(sorted(kind.__name__ for kind in kinds - {dict}))
        raise argparse.ArgumentTypeError(f"invalid value: {text!r}, use {wanted}")

    return read
