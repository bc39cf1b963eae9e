"""Write docs/command.md from the command's parsers: ``python -m tests.cli.write_reference``."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from streamsvm.cli.learners import ADDED_BY_HAND
from streamsvm.cli.main import parser
from streamsvm.cli.parameters import parameters
from streamsvm.learners.bases.registry import RegisteredLearner, registered_learners

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command.md"
LEARNER = "learner"
"""The group of the learner's options."""

INTRODUCTION = """\
# The command: every option

| subcommand | what it does |
|---|---|
| `replay` | learns from a file, replayed as a stream ([how](replay.md)) |
| `consume` | learns from a Kafka topic ([how](kafka.md)) |
| `compare` | says which of two models is better, on a file or a topic ([how](trust.md)) |
| `predict` | applies a saved model to a file or a topic ([how](scoring.md)) |
| `forget` | takes examples back from a model or a checkpoint ([how](forgetting.md)) |
| `warm` | compiles in advance |

Options that mean the same in several subcommands stand under
[Options of several subcommands](#options-of-several-subcommands); those of the learner, its kernel
and its scaling, which `replay`, `consume` and `compare` take, under
[Options of the learners](#options-of-the-learners). `streamsvm replay --help --learner lasvm`
shows what LASVM takes, with the whole text. `python -m tests.cli.write_reference` writes this page.

The command ends with one of four exit codes:

| code | meaning |
|---|---|
| 0 | done |
| 1 | data or a file cannot be used or does not fit the model; a file has no rows |
| 2 | wrong arguments |
| 130 | interrupted by Ctrl-C or SIGTERM; the report was printed and the model saved |
"""

OF_LEARNERS = """
## Options of the learners

A learner refuses options that it does not take. An option that is not given takes the default of
the learner's class; in Python its name has `_` instead of `-`.

"""

OF_EACH = """
And those that each learner takes beside these. [The reference](api/learners.md) explains them with
its class, and `streamsvm replay --help --learner NAME` on the terminal.

"""


def subcommands() -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the subcommands by name."""
    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                command.complete()
            return dict(action.choices)
    raise AssertionError("the command has no subcommands")


class Row(NamedTuple):
    """An option or argument of a subcommand, as a row of a table."""

    names: str
    meaning: str


def reference() -> str:
    """Return the text of the page."""
    commands = subcommands()
    rows = {name: list(_rows(command)) for name, command in commands.items()}
    users: dict[Row, list[str]] = {}
    groups: dict[Row, str] = {}
    for name in commands:
        for group, row in rows[name]:
            users.setdefault(row, []).append(name)
            groups.setdefault(row, group)
    shared = {row: names for row, names in users.items() if len(names) > 1}
    parts = [INTRODUCTION]
    for name, command in commands.items():
        description = textwrap.fill(_plain(command.description or ""), 100)
        parts.append(f"\n## streamsvm {name}\n\n{description}\n\n")
        parts += _table(("option", "meaning"), [row for _, row in rows[name] if row not in shared])
    parts.append("\n## Options of several subcommands\n")
    for title in dict.fromkeys(groups[row] for row in shared):
        if title != LEARNER:
            found = [row for row in shared if groups[row] == title]
            cells = [(row.names, ", ".join(shared[row]), row.meaning) for row in found]
            parts += ["\n", *_table((title, "of", "meaning"), cells)]
    named = {found.name: found.texts for found in parameters(ADDED_BY_HAND)}
    (group,) = [one for one in commands["replay"]._action_groups if one.title == LEARNER]
    by_hand = [one for one in group._group_actions if one.dest not in named]
    parts.append(OF_LEARNERS)
    parts += _table(("option", "meaning"), [(_names(one), _meaning(one)) for one in by_hand])
    parts.append(OF_EACH)
    options = {
        one.dest: ", ".join(f"`{option}`" for option in one.option_strings)
        for one in group._group_actions
    }
    of_each = [
        (f"`{learner.name}`", f"`{learner.cls.__name__}`", ", ".join(_of(learner, options)))
        for learner in registered_learners()
    ]
    return "".join([*parts, *_table(("learner", "class", "options"), of_each)])


def _of(learner: RegisteredLearner, options: dict[str, str]) -> Iterator[str]:
    """Yield the options of the parameters of a learner that its class explains."""
    for found in parameters(ADDED_BY_HAND):
        if learner.name in found.texts:
            yield options[found.name]


def _rows(command: argparse.ArgumentParser) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a subcommand, each with the title of its group."""
    # The names of the two groups that argparse makes by itself.
    standard = {"positional arguments": "arguments", "options": "options"}
    for group in command._action_groups:
        title = group.title or ""
        for action in group._group_actions:
            if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):
                yield standard.get(title, title), Row(_names(action), _meaning(action))


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|\n"
    for cells in rows:
        yield f"| {' | '.join(cells)} |\n"


def _meaning(action: argparse.Action) -> str:
    required = "Required: " if action.option_strings and action.required else ""
    return required + _plain(action.help or "", not required)


def _names(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{(action.metavar or action.dest).upper()}`"
    value = ""
    if action.nargs != 0:
        choices = "|".join(map(str, action.choices)) if action.choices else None
        value = " " + str(choices or action.metavar or action.dest.upper())
    return ", ".join(f"`{option}{value}`".replace("|", "\\|") for option in action.option_strings)


def _plain(text: str, capital: bool = True) -> str:
    """Return a help text as Markdown, without what some versions of argparse add to it."""
    text = text.removesuffix(" (default: %(default)s)").replace("%%", "%").replace("``", "`")
    text = text.replace("|", "\\|").replace("*", "\\*")
    return text[:1].upper() + text[1:] if capital else text


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    print(PAGE)
