"""What the trials of faults share: their list, the command, streams, and what they expect."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from connectors import KafkaSource
from streamsvm import StandardScaler, SVMSGDClassifier
from streamsvm.cli.main import main as run_command
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.runner import Run

Trial = Callable[[Path], None]


class Fault(NamedTuple):
    """A line of the table, and what shows that it holds."""

    what: str
    then: str
    trial: Trial

    @property
    def line(self) -> str:
        """The line of the table."""
        return f"| {self.what} | {self.then} |"


FAULTS: list[Fault] = []


def fault(what: str, then: str) -> Callable[[Trial], Trial]:
    """Return a decorator for a trial, which is given an empty folder and raises if it fails."""

    def add(trial: Trial) -> Trial:
        FAULTS.append(Fault(what, then, trial))
        return trial

    return add


class Said(NamedTuple):
    """What a command returned and wrote."""

    code: int
    out: str
    error: str

    @property
    def report(self) -> Any:
        """The report of ``--json``."""
        return json.loads(self.out)


def command(*arguments: object) -> Said:
    """Run the command in this process."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            code = run_command([str(one) for one in arguments])
        except SystemExit as end:
            code = int(end.code or 0)
    return Said(code, out.getvalue(), error.getvalue())


def expect(condition: object, *about: object) -> None:
    """Fail unless a condition holds."""
    if not condition:
        raise AssertionError(", ".join(str(one)[:300] for one in about) or "it does not")


def refused(said: Said, *words: str) -> None:
    """Fail unless a command ended with one sentence that holds some words."""
    expect(said.code in (1, 2), said)
    expect(said.error.count("\n") == 1 and "Traceback" not in said.error, said.error)
    for word in words:
        expect(word in said.error, word, said.error)


def examples(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return examples of two features and a label that depends on both."""
    x = np.random.default_rng(seed).normal(size=(n, 2)).tolist()
    return [{"a": a, "b": b, "y": a + b > 0} for a, b in x]


def payloads(found: Iterable[Any]) -> list[bytes]:
    """Return values as JSON."""
    return [json.dumps(value).encode() for value in found]


def learn(values: Iterable[Any], target: str = "y", **options: Any) -> tuple[Any, Any, list[Any]]:
    """Learn messages with a linear learner; return the report, the model and the dead letters."""
    letters: list[Any] = []
    model = options.pop("model", None) or StandardScaler() | SVMSGDClassifier()
    late, most = options.pop("late", None), options.pop("most", None)
    source = KafkaSource(iter(values), target, **options)
    bad = BadEvents(letters.append, most=most)
    return Run(source, model, bad_events=bad, late=late).execute(), model, letters
