"""``python -m streamsvm``, and the `streamsvm` command.

Nothing large is imported before an interruption can be answered: the imports take some seconds.
"""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    arguments
        The command line without the program's name; None: that of the process.

    Returns
    -------
    int
        The exit code.

    """
    try:
        from streamsvm.cli.interruptions import interrupted_by_sigterm, leaving_at_once

        with interrupted_by_sigterm():
            with leaving_at_once():
                from streamsvm.cli.main import main as run
            return run(arguments)
    except KeyboardInterrupt:
        print("streamsvm: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
