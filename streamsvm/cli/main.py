"""The entry point of the command: arguments, exit codes, one line for each foreseen error.

Exit codes: 0 done; 1 the data or a file cannot be used (what was learnt before is reported and
saved); 2 wrong arguments; 130 interrupted (the report was printed and the model saved).

The modules of subcommands are imported when they are needed: with the compiler, that takes seconds.
"""

import contextlib
import gc
import sys
from collections.abc import Iterator, Sequence

from streamsvm import __version__
from streamsvm.cli.interruptions import INTERRUPTED, leaving_at_once
from streamsvm.cli.parser import Parser, say
from streamsvm.errors import ParameterError, StreamSVMError

_COMMANDS = {
    "replay": "train on a file, replayed as a stream, and report; --test evaluates on another",
    "consume": "learn from a Kafka topic as it comes, and report",
    "compare": "say which of two models is better on a file, replayed as a stream, or on a topic",
    "predict": "predict a file or a topic with a saved model; --target evaluates it",
    "forget": "take examples back from a saved model or a checkpoint",
    "warm": "compile and cache the solvers for this machine",
}

_ELSEWHERE = dict.fromkeys(
    ("evaluate", "eval", "test", "score"),
    "`predict MODEL FILE --target COLUMN -o OUT`, or `replay FILE --target COLUMN --test OTHER`",
)
_ELSEWHERE |= dict.fromkeys(("train", "fit", "learn"), "`replay FILE --target COLUMN --save MODEL`")
_ELSEWHERE |= dict.fromkeys(("unlearn", "delete", "remove"), "`forget MODEL --ids FILE`")
_ELSEWHERE |= {
    "label": "`replay FILE --target COLUMN --learner sequence_larank`, or `predict MODEL FILE`",
    "label-topic": "`consume --learner sequence_larank --columns TOKENS --target LABELS`",
}
"""What is used here for commands that other tools have."""


def parser() -> Parser:
    """Return the parser of the whole command."""
    main_parser = Parser(
        prog="streamsvm",
        description="Online support vector machines for real streams.",
        elsewhere=_ELSEWHERE,
    )
    main_parser.add_argument("--version", action="version", version=f"streamsvm {__version__}")
    subcommands = main_parser.add_subparsers(required=True, metavar="COMMAND")
    for name, text in _COMMANDS.items():
        subcommands.add_parser(name, help=text, complete=_complete)
    return main_parser


def _complete(command: Parser) -> None:
    """Add the arguments of a subcommand to its parser."""
    with _without_collector():
        from streamsvm.cli import compare, consume, forget, predict, replay, warm
        from streamsvm.cli.learners import load_plugins

        load_plugins()
    modules = {"replay": replay, "consume": consume, "predict": predict}
    modules |= {"compare": compare, "forget": forget, "warm": warm}
    modules[command.prog.split()[-1]].complete(command)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Collect no garbage: hardly any of the 220,000 new objects is, and looking takes time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command of some arguments (None: the process's own); return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    with leaving_at_once():
        options = parser().parse_args(given)
        from connectors import SourceError

    try:
        return int(options.run(options))
    except ParameterError as error:
        say(f"streamsvm: {error}")
        return 2
    except (StreamSVMError, SourceError) as error:
        say(f"streamsvm: {error}")
        return 1
    except OSError as error:
        from streamsvm.cli.outputs import error_text

        say(f"streamsvm: {error_text(error)}")
        return 1
    except MemoryError as error:
        say(f"streamsvm: there is not enough memory: {error}")
        return 1
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return 130
