"""Sources from paths and options of the command line."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from connectors import (
    ArrowSource,
    CSVSource,
    JSONLinesSource,
    NotReadableError,
    ParquetSource,
    SimulatedStream,
    Source,
    SourceNotFoundError,
    TabularSource,
)
from streamsvm.cli.values import names, positive, whole

# The longest sleep between two checks for Ctrl-C, in seconds.
_LONGEST_SLEEP = 0.1
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_SOURCES: dict[str, Any] = dict.fromkeys((".arrow", ".arrows", ".feather", ".ipc"), ArrowSource)
_SOURCES |= dict.fromkeys((".csv", ".tsv"), CSVSource)
_SOURCES |= dict.fromkeys((".jsonl", ".ndjson", ".json"), JSONLinesSource)

FILES = "Parquet file or folder, Arrow file, .csv, or .jsonl (also .csv.gz and the like)"
"""What the commands read, in words."""


def open_source(path: str, target: str | None, **options: Any) -> TabularSource:
    """Open a file, by its suffix, or a folder of Parquet files.

    Parameters
    ----------
    path
        The file or folder.
    target
        The column of labels; None: there are no labels.
    options
        Further arguments of `ParquetSource` and the others.

    Returns
    -------
    TabularSource
        The source.

    """
    name = Path(path)
    if not name.exists():
        raise SourceNotFoundError(f"`{path}` does not exist; give a {FILES}")
    ending = (Path(name.stem) if name.suffix.lower() in _COMPRESSED else name).suffix.lower()
    if (source := _SOURCES.get(ending)) is not None and not name.is_dir():
        options.pop("late_files", None)  # the source is one file
        opened: TabularSource = source(path, target, **options)
        return opened
    try:
        return ParquetSource(path, target, **options)
    except NotReadableError as error:
        if name.is_dir() or ending in (".parquet", ".pq"):
            raise
        # The name may be why the file was taken for one of Parquet.
        others = ", ".join(_SOURCES)
        raise NotReadableError(f"{error}; names of other formats end in {others}") from error


def add_parse_numbers(data: argparse._ActionsContainer) -> None:
    """Add the option that makes numbers of texts."""
    data.add_argument(
        "--parse-numbers",
        nargs="?",
        const=True,
        type=names,
        metavar="A,B,...",
        help="learn these texts as numbers, or times as seconds since 1970, not one-hot; without "
        "names: columns whose first 1,000 texts are numbers or times; in a topic all such texts",
    )


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
