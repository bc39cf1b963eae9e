"""Sources from paths and options of the command line."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from connectors import ArrowSource, ParquetSource, SimulatedStream, Source
from streamsvm.cli.values import positive, whole

# The longest sleep between two checks for Ctrl-C, in seconds.
_LONGEST_SLEEP = 0.1
_ARROW_ENDINGS = (".arrow", ".arrows", ".feather", ".ipc")


def open_source(path: str, target: str | None, **options: Any) -> ArrowSource | ParquetSource:
    """Open a Parquet file or folder, or an Arrow file (by its suffix).

    Parameters
    ----------
    path
        The file or folder.
    target
        The column of labels; None: there are no labels.
    options
        Further arguments of `ParquetSource` or `ArrowSource`.

    Returns
    -------
    ArrowSource | ParquetSource
        The source.

    """
    if Path(path).suffix.lower() in _ARROW_ENDINGS:
        options.pop("late_files", None)  # an Arrow source is one file
        return ArrowSource(path, target, **options)
    return ParquetSource(path, target, **options)


def add_pace_options(group: argparse._ArgumentGroup) -> None:
    """Add the options of a simulated stream."""
    group.add_argument(
        "--rate", type=positive, help="examples a second; default: as fast as possible"
    )
    group.add_argument("--timestamp", metavar="COLUMN", help="column of recorded times")
    group.add_argument(
        "--speed", type=positive, help="replay at the recorded pace times this factor (--timestamp)"
    )
    group.add_argument(
        "--shuffle-buffer",
        type=whole(0),
        default=0,
        metavar="ROWS",
        help="shuffle within blocks of so many rows, by --seed; default 0: the file's order",
    )


def paced(source: Source, options: argparse.Namespace, stop: list[int]) -> Source:
    """Return a source at the pace that the options ask for.

    Parameters
    ----------
    source
        The source.
    options
        The parsed command line.
    stop
        Received signals; waiting ends when the list is not empty.

    Returns
    -------
    Source
        The source itself, or a `SimulatedStream` of it.

    Raises
    ------
    KeyboardInterrupt
        Raised by a wait when `stop` is not empty.

    """
    if options.rate is None and options.speed is None:
        return source

    def sleep(seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if stop:
                raise KeyboardInterrupt
            time.sleep(min(left, _LONGEST_SLEEP))

    return SimulatedStream(source, rate=options.rate, speed=options.speed, sleep=sleep)
