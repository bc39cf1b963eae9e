"""The command's argument parser: a wrong argument gets one line of usage and the nearest name."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from streamsvm.cli.values import path, positive, whole

_READERS: dict[str, Callable[[str], Any]] = {"ROWS": whole(1), "SECONDS": positive}
_READERS |= dict.fromkeys(("DIR", "FILE", "MODEL", "OUT", "PATTERN"), path)
"""How values are read, by their placeholders, unless an option says otherwise."""

Group = argparse._ActionsContainer
"""What options are added to, a parser or a group of its options; argparse has no public name."""


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` with short errors that name the option probably meant.

    `complete` adds the description and the arguments of a subcommand, when its parser is first
    used; `elsewhere` says what to use in place of commands that there are not: {name: command}.
    """

    def __init__(
        self,
        *,
        complete: Callable[[Parser], None] | None = None,
        elsewhere: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self._missing, self._elsewhere = complete, elsewhere or {}
        # So that an unknown option is reported by the parser of its subcommand.
        self.set_defaults(parser=self)

    def complete(self) -> None:
        """Add the description and the arguments, if that was not done before."""
        add, self._missing = self._missing, None
        if add is not None:
            add(self)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse a command line; its parser is completed before."""
        self.complete()
        return super().parse_known_args(args, namespace)

    def parse_args(  # type: ignore[override]
        self, arguments: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse a command line; an unknown option is an error of its subcommand."""
        options, unknown = self.parse_known_args(arguments, namespace)
        if unknown:
            options.parser.refuse(unknown)
        return options

    def refuse(self, unknown: list[str]) -> NoReturn:
        """End with an error about unknown arguments."""
        names = [argument.partition("=")[0] for argument in unknown if argument.startswith("-")]
        if not names:
            self.error(f"too many arguments: {' '.join(unknown)}")
        known = [option for action in self._actions for option in action.option_strings]
        self.error("; ".join(f"unknown option {name}{did_you_mean(name, known)}" for name in names))

    def error(self, message: str) -> NoReturn:
        """Print the error and one line of usage; exit with code 2."""
        needed = [
            f"{action.option_strings[-1]} {action.metavar or action.dest.upper()}"
            if action.option_strings
            else str(action.metavar or action.dest.upper())
            for action in self._actions
            if action.required
        ]
        usage = " ".join([self.prog, *needed, "[options]"])
        self.exit(2, f"{self.prog}: {message}\nusage: {usage}; {self.prog} --help lists all\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        what = "command" if isinstance(action, argparse._SubParsersAction) else "value"
        hint = did_you_mean(str(value), choices)
        if what == "command" and value in self._elsewhere:
            hint = f": use {self._elsewhere[value]}"
        raise argparse.ArgumentError(
            action if action.option_strings else None,
            f"unknown {what} {value!r}{hint} (choose from {', '.join(choices)})",
        )


def add_table(group: Group, options: Mapping[str, str | dict[str, Any]]) -> None:
    """Add the options of a table.

    Its keys are names, with a placeholder if there is one (``"-o --output OUT"``); its values are
    help texts, or arguments of ``add_argument``.
    """
    for key, value in options.items():
        names = [word for word in key.split() if word.startswith("-")]
        settings: dict[str, Any] = {"help": value} if isinstance(value, str) else value
        if placeholder := key.split()[len(names) :]:
            reader = _READERS.get(placeholder[0])
            settings = {"metavar": placeholder[0], "type": reader} | settings
        group.add_argument(*names, **settings)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question for the known name that is nearest to a name; empty: none is near.

    >>> from streamsvm.cli.parser import did_you_mean
    >>> did_you_mean("--lerner", ["--learner", "--limit"])
    ', did you mean --learner?'
    """
    # Dashes that all have would make --rate near to --bias-rate.
    bare = {other.lstrip("-"): other for other in known}
    near = difflib.get_close_matches(name.lstrip("-"), list(bare), n=1, cutoff=0.65)
    return f", did you mean {bare[near[0]]}?" if near else ""
