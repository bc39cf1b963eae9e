"""`streamsvm forget`: take examples back from a saved model, or from a checkpoint of a run."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from connectors import NotReadableError, id_of_key
from streamsvm.cli.outputs import check_distinct, check_file
from streamsvm.cli.parser import Parser, add_table, path
from streamsvm.errors import ParameterError
from streamsvm.run.forgetting import InFile, forget_in_file
from streamsvm.support.printing import printable

_LARGEST = 2**63 - 1
_OPTIONS: dict[str, Any] = {
    "--ids FILE": "ids of the examples, one a line: those given to learn_many, or their numbers in "
    "the order in which they were learnt, counted from 1 (refused rows, and those that a selection "
    "did not choose, are not counted); - reads the standard input. Empty lines and those that "
    "begin with # are passed over",
    "--keys FILE": "keys of Kafka messages that were learnt with --tombstones forget, one a line, "
    "in place of --ids; - reads the standard input",
    "-o --output FILE": "write the model there, and leave the one that was read as it is; default: "
    "replace it",
    "--json": dict(action="store_true", help="print what was forgotten as JSON"),
}


def complete(parser: Parser) -> None:
    """Add the subcommand's arguments."""
    parser.description = (
        "Takes examples back: the model is then one that was trained without them, up to the gap "
        "that is printed. Of a checkpoint also events that wait for their labels, and examples in "
        "the monitor's sample, are forgotten; a checkpoint that a run is using is refused. The "
        "file is replaced in one step, and is unchanged after any error. What else may hold the "
        "examples is printed, too."
    )
    parser.set_defaults(run=run)
    parser.add_argument("model", type=path, help="file written by --save or --checkpoint")
    add_table(parser, _OPTIONS)


def run(options: argparse.Namespace) -> int:
    """Forget, write and report; return the exit code."""
    if (options.ids is None) == (options.keys is None):
        raise ParameterError("name the examples by --ids FILE, or by --keys FILE")
    if options.output is not None:
        check_distinct(options)
    check_file("--output" if options.output else "MODEL", options.output or options.model)
    ids = _ids_in(options.ids) if options.keys is None else _keys_in(options.keys)
    output = None if options.output is None else Path(options.output)
    found = forget_in_file(Path(options.model), ids, output)
    _print(options, found)
    return 0


def _ids_in(file: str) -> list[int]:
    """Return the ids in a file."""
    ids = []
    for number, line in enumerate(_lines_of(file), 1):
        text = line.decode("utf-8", "backslashreplace").strip()
        if not text or text.startswith("#"):
            continue
        if not (text.isdecimal() and len(text) < 20 and 1 <= int(text) <= _LARGEST):
            wanted = "use a whole number of at least 1"
            raise NotReadableError(f"{file}: line {number}: {text!r:.80} is no id: {wanted}")
        ids.append(int(text))
    return ids


def _keys_in(file: str) -> list[int]:
    """Return the ids of the keys in a file."""
    return [id_of_key(line) for line in _lines_of(file) if line]


def _lines_of(file: str) -> list[bytes]:
    content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return content.removeprefix(b"\xef\xbb\xbf").splitlines()


def _print(options: argparse.Namespace, found: InFile) -> None:
    """Print what was forgotten, and what may hold the examples still."""
    of_model, written = found.of_model, options.output or options.model
    removed, not_kept = (list(map(int, ids)) for ids in (of_model.removed, of_model.not_kept))
    others = _others(options, found)
    if options.json:
        result = {"file": written, "removed": removed, "not_kept": not_kept}
        result |= {"waiting": found.n_waiting, "gap": float(of_model.gap)}
        print(json.dumps(result | {"may_still_hold_them": others}))
        return
    print(f"forgotten       {len(removed):,} examples")
    print(f"not kept        {len(not_kept):,}  (the model keeps nothing under these ids)")
    if found.n_waiting:
        print(f"waiting         {found.n_waiting:,} events that waited for their labels")
    print(f"duality gap     {of_model.gap:.4g}  (of the examples that are kept)")
    print(printable(f"written         {written}"))
    print(printable(f"may hold them   {'; '.join(others)}"))


def _others(options: argparse.Namespace, found: InFile) -> list[str]:
    """Return what may hold the examples still."""
    others = [] if options.output is None else [options.model]
    letters = f"{options.model}.dead_letters.jsonl"
    others.append(letters if found.is_checkpoint and Path(letters).exists() else "dead letters")
    return [*others, "other checkpoints and copies of the model", "the source of the events"]
