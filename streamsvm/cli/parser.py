"""The command's argument parser: a wrong argument gets one line of usage and the nearest name.

And the readers of the values of options: what is out of range is refused before anything runs.
"""

from __future__ import annotations

import argparse
import difflib
import json
import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NoReturn

from streamsvm.support.printing import printable


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a reader of whole numbers of a range, a ``type`` for `argparse`.

    >>> from streamsvm.cli.parser import whole
    >>> whole(1)("20")
    20
    """
    wanted = f"of at least {least}" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r}: use a whole number {wanted}")
        return value

    return read


def number(text: str) -> float:
    """Read a finite number of at least 0."""
    return _finite(text, "a number of at least 0", lambda value: value >= 0.0)


def positive(text: str) -> float:
    """Read a finite number above 0."""
    return _finite(text, "a number above 0", lambda value: value > 0.0)


def limit(text: str) -> float | None:
    """Read a finite number of at least 1, or "none": None."""
    if text.lower() == "none":
        return None
    return _finite(text, "a number of at least 1, or none", lambda value: value >= 1.0)


def _finite(text: str, wanted: str, is_meant: Callable[[float], bool]) -> float:
    value = _float(text)
    if not (math.isfinite(value) and is_meant(value)):
        raise argparse.ArgumentTypeError(f"{text!r}: use {wanted}")
    return value


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def number_or_share(text: str) -> float:
    """Read a number of examples, as an int, or a share of them, as a float from 0 to 1."""
    if text.endswith("%"):
        found = _float(text[:-1]) / 100.0
    else:
        found = int(text) if text.isdecimal() else _float(text)
    if isinstance(found, float) and not 0.0 <= found <= 1.0:
        raise argparse.ArgumentTypeError(
            f"{text!r}: use a number of examples, as 100, or a share, as 1% or .01, up to 100%"
        )
    return found


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def number_or_time(text: str) -> int | timedelta:
    """Read a number of examples of at least 1, or a time above 0 with its unit.

    >>> from streamsvm.cli.parser import number_or_time
    >>> number_or_time("50000"), str(number_or_time("10m"))
    (50000, '0:10:00')
    """
    seconds = _float(text[:-1]) * _UNITS.get(text[-1:], math.nan)
    if 0.0 < seconds < 1e12:
        return timedelta(seconds=seconds)
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(
            f"{text!r}: use a number of examples, as 50000, or a time, as 90s, 10m, 2h or 7d"
        )
    return int(text)


def path(text: str) -> str:
    """Read a path; an empty one, which a script's unset variable gives, is none."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not a path")
    return text


def names(text: str) -> list[str]:
    """Read names with commas between them."""
    found = text.split(",")
    if not all(found):
        raise argparse.ArgumentTypeError(f"{text!r}: use names with commas between them")
    return found


def split(text: str | None) -> list[str]:
    """Return the names in an option; none if it was not given, or is empty."""
    return text.split(",") if text else []


def label_of(text: str) -> Any:
    """Return the label that a text means: its JSON value, or the text itself.

    ``True`` and ``False`` may be written as in Python.

    >>> from streamsvm.cli.parser import label_of
    >>> label_of("False"), label_of("7"), label_of("spam")
    (False, 7, 'spam')
    """
    if text in ("True", "False"):
        return text == "True"
    try:
        label = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(label, (list, dict)) else label


# The parser

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
        self.before_help: Callable[[Sequence[str]], None] | None = None
        """Called with the arguments before help is printed; it may choose what the help shows."""
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
        if self.before_help is not None and args and {"-h", "--help"}.intersection(args):
            self.before_help(args)
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

    def show_only(self, shown: Mapping[str, str | None], of: Collection[str]) -> None:
        """Leave in the help, of some options, only those in `shown`, with their texts if not None.

        Options are named as their values in the namespace. The usage becomes one line.
        """
        for action in self._actions:
            if action.dest in of:
                if action.dest not in shown:
                    action.help = argparse.SUPPRESS
                elif text := shown[action.dest]:
                    action.help = text
        self.usage = self.short_usage()

    def check(self, name: str, value: str) -> None:
        """End with an error if an option does not take a value."""
        for action in self._actions:
            if action.dest == name:
                try:
                    self._check_value(action, value)
                except argparse.ArgumentError as error:
                    self.error(str(error))

    def error(self, message: str) -> NoReturn:
        """Print the error and one line of usage; exit with code 2."""
        usage, which = self.short_usage(), " --learner NAME" if self.before_help else ""
        self.exit(
            2,
            f"{self.prog}: {printable(message)}\n"
            f"usage: {usage}; {self.prog} --help{which} lists all\n",
        )

    def short_usage(self) -> str:
        """Return the command with the arguments that it needs, on one line."""
        needed = []
        for action in self._actions:
            name = str(action.metavar or action.dest.upper())
            if not action.option_strings:
                needed.append(name if action.required else f"[{name}]")
            elif action.required:
                needed.append(f"{action.option_strings[-1]} {name}")
        return " ".join([self.prog, *needed, "[options]"])

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


def say(text: str) -> None:
    """Print a line on standard error: names and labels in it must not steer the terminal."""
    print(printable(text), file=sys.stderr)
