"""Sources from paths and options of the command line."""

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
from streamsvm.cli.parser import Group, add_table, names, positive, split, whole

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

    `target` is the column of labels (None: there are none), `options` are further arguments of
    `ParquetSource` and the others.
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
        raise NotReadableError(
            f"{error}; names of other formats end in {others}; "
            "lines of tokens are read by the learners of sentences: --learner sequence_larank"
        ) from error


PARSE_NUMBERS: dict[str, Any] = {
    "--parse-numbers A,B,...": dict(
        nargs="?",
        const=True,
        type=names,
        help="learn these texts as numbers, or times as seconds since 1970, not one-hot; without "
        "names: columns whose first 1,000 texts are numbers or times; in a topic all such texts",
    ),
    "--decimal": dict(
        choices=(".", ","),
        default=".",
        help="what is before the fraction of numbers that are texts, as all are in CSV; default .",
    ),
    "--missing-tokens A,B,...": dict(
        type=names,
        default=[],
        help="texts that stand for missing values, such as '?,-'; in CSV empty fields, NA, NaN and "
        "null do",
    ),
}
"""How texts are read."""


def texts_from(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of a source that say how texts are read, but `parse_numbers`."""
    return {"decimal": options.decimal, "missing_tokens": options.missing_tokens}


PACE: dict[str, Any] = {
    "--rate": dict(type=positive, help="examples a second; default: as fast as possible"),
    "--timestamp COLUMN": "column of recorded times",
    "--speed": dict(
        type=positive, help="replay at the recorded pace times this factor (--timestamp)"
    ),
    "--shuffle-buffer ROWS": dict(
        type=whole(0),
        default=0,
        help="shuffle within blocks of so many rows, by --seed; default 0: the file's order",
    ),
}
"""The options of a simulated stream."""


def add_data_options(data: Group, what: str, seed_of: str) -> None:
    """Add the options of features and labels; `what` is the word for a column of the source."""
    of_columns = {
        "--columns A,B,...": f"features; default: all other {what}s",
        "--exclude A,B,...": f"{what}s that are no features",
        f"--weight {what.upper()}": "weight of each example, at least 0; it is no feature",
    }
    of_labels: dict[str, Any] = {
        "--positive LABEL": "learn this label against all others",
        "--max-classes N": dict(
            type=whole(2),
            help="classes of the target; default 1000, and fewer if they look like quantities",
        ),
        "--seed": dict(type=whole(0), default=0, help=f"of {seed_of}; default 0"),
    }
    add_table(data, of_columns | PARSE_NUMBERS | of_labels)


def columns_from(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of a source that say which columns are features."""
    return {
        "columns": split(options.columns) or None,
        "exclude": split(options.exclude),
        "weight": options.weight,
        "parse_numbers": options.parse_numbers or (),
        **texts_from(options),
    }


def paced(source: Source, options: argparse.Namespace, stop: list[int]) -> Source:
    """Return a source at the pace that the options ask for: itself, or a `SimulatedStream` of it.

    Its waiting ends by a KeyboardInterrupt when signals are in `stop`.
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
