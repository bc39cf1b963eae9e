"""``python -m streamsvm``, and the `streamsvm` command.

Nothing large is imported before an interruption can be answered: the imports take some seconds.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    arguments
        The command line without the program's name; None: that of the process, which then ends
        with the exit code.

    Returns
    -------
    int
        The exit code.

    """
    if arguments is None:
        _end(_run(None))
    return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        from streamsvm.cli.interruptions import interrupted_by_sigterm, leaving_at_once

        with interrupted_by_sigterm():
            with leaving_at_once():
                from streamsvm.cli.main import main as run
            return run(arguments)
    except KeyboardInterrupt:
        print("streamsvm: interrupted", file=sys.stderr)
        return 130
    except SystemExit as error:
        # Of the parser, which has printed help or an error.
        if arguments is not None:
            raise
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        if arguments is not None:
            raise
        sys.excepthook(*sys.exc_info())
        return 1


def _end(code: int) -> NoReturn:
    """End the process with an exit code, whatever threads of libraries still do.

    Arrow reads CSV files ahead in threads that nobody can wait for. One of them that runs while
    Python, or the C library, takes itself down aborts the process: exit code 134 for an error that
    has been printed. So neither is taken down; files are closed, and what is printed is flushed.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            # Nobody reads it, the disk is full, or it was closed.
            code = code or 1
    with contextlib.suppress(Exception):
        logging.shutdown()
    os._exit(code)


if __name__ == "__main__":
    main()
