"""Write docs/command.md from the command's parsers: ``python -m tests.cli.write_reference``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from streamsvm.cli.learners import ADDED_BY_HAND
from streamsvm.cli.main import parser
from streamsvm.cli.parameters import parameters

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command.md"

INTRODUCTION = """\
# The command: every option

`streamsvm` has six subcommands: `replay` learns from a file, `consume` from a Kafka topic,
`compare` says which of two models is better on one of these, `predict` applies a saved model to one
of these, `forget` takes examples back from a model, and `warm` compiles in advance. All but
`compare` and `forget` know learners of label sequences, too
([label sequences](sequences.md)). This page is
written by `python -m tests.cli.write_reference` from the parsers of the command. How the options
are used is shown in [replay](replay.md), [Kafka](kafka.md), [late labels](late_labels.md),
[checkpoints](checkpoints.md) and [forgetting](forgetting.md).

The command ends with one of four exit codes:

| code | meaning |
|---|---|
| 0 | done |
| 1 | the data or a file cannot be used; a file has no rows |
| 2 | wrong arguments |
| 130 | interrupted by Ctrl-C or SIGTERM; the report was printed and the model saved |

The options of the learner are the parameters of its class, in the words of its docstring. Names in
bold say which learners (`--learner`) take the option; the others refuse it. An option that is not
given takes the default of the class. Its name in Python has `_` instead of `-`.
"""


def subcommands() -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the subcommands by name."""
    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                command.complete()
            return dict(action.choices)
    raise AssertionError("the command has no subcommands")


def reference() -> str:
    """Return the text of the page."""
    parts = [INTRODUCTION]
    for name, command in subcommands().items():
        parts.append(f"\n## streamsvm {name}\n\n{_plain(command.description or '')}\n")
        for group in command._action_groups:
            actions = [a for a in group._group_actions if a.help != argparse.SUPPRESS]
            actions = [a for a in actions if not isinstance(a, argparse._HelpAction)]
            if actions:
                parts.append("\n" + "\n".join(_table(_title(group), actions, name)) + "\n")
    return "".join(parts)


def _title(group: argparse._ArgumentGroup) -> str:
    # The names of the two groups that argparse makes by itself.
    standard = {"positional arguments": "arguments", "options": "options"}
    title = group.title or ""
    return standard.get(title, title)


def _table(title: str, actions: list[argparse.Action], command: str) -> Iterator[str]:
    yield f"| {title} | meaning |"
    yield "|---|---|"
    of_learners = {found.name: found for found in parameters(ADDED_BY_HAND)}
    if command.startswith("label"):
        # Learners of sentences have parameters of the same names that mean something else.
        of_learners = {}
    for action in actions:
        required = "Required: " if action.option_strings and action.required else ""
        meaning = required + _plain(action.help or "", not required)
        if title == "learner" and action.dest in of_learners:
            meaning = _by_learner(of_learners[action.dest].texts)
        yield f"| {_names(action)} | {meaning} |"


def _by_learner(texts: dict[str, str]) -> str:
    """Return the descriptions of a parameter, each with the learners that it is of."""
    learners: dict[str, list[str]] = {}
    for learner, text in texts.items():
        learners.setdefault(text, []).append(learner)
    return "<br>".join(
        f"**{', '.join(names)}**: {_plain(text)}" for text, names in learners.items()
    )


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
