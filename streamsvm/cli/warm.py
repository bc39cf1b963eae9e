"""`streamsvm warm`: compile in advance, so that later runs find the code in the cache."""

import argparse
import sys
import time

from streamsvm.cli.parser import Parser
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.run.warm import KERNELS, WarmProgress, warm

_PLAIN_EVERY = 5.0


def complete(parser: Parser) -> None:
    """Add the subcommand's arguments."""
    parser.description = (
        "Compiles the solvers for each built-in kernel and keeps the machine code in "
        "the cache, as a container's build or an installation may want. Ctrl-C ends it; what was "
        "compiled up to there is kept."
    )
    parser.add_argument(
        "--learner",
        choices=list(_known()),
        action="append",
        help="for this learner, and no others that are not named; default: all",
    )
    parser.add_argument(
        "--kernel",
        choices=list(KERNELS),
        action="append",
        help="for this kernel, and no others that are not named; default: all",
    )
    parser.set_defaults(run=run)


def _known() -> dict[str, type]:
    """Return the learners by name."""
    return {learner.name: learner.cls for learner in registered_learners()}


def run(options: argparse.Namespace) -> int:
    """Compile what was asked for; return the exit code."""
    start = time.perf_counter()
    learners = None
    if options.learner:
        learners = [_known()[name] for name in options.learner]
    n = warm(learners, options.kernel, progress=_Lines())
    print(f"done in {time.perf_counter() - start:.1f} s: {n} functions compiled", file=sys.stderr)
    return 0


class _Lines:
    """Prints the progress: a line for each configuration, and one every five seconds within it."""

    def __init__(self) -> None:
        self._said = ("", 0.0)

    def __call__(self, now: WarmProgress) -> None:
        configuration, when = self._said
        is_due = time.monotonic() - when >= _PLAIN_EVERY
        if not now.configuration or (configuration == now.configuration and not is_due):
            return
        self._said = (now.configuration, time.monotonic())
        print(
            f"{now.done} of {now.total} configurations, {now.functions} functions compiled; now: "
            f"{now.configuration}",
            file=sys.stderr,
        )
