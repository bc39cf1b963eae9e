"""`streamsvm predict FOLDER --output FOLDER`: a result for each file, by several processes."""

import argparse
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from connectors.parquet_files import links_left_out, names_below
from streamsvm.cli.evaluate import why_none
from streamsvm.cli.outputs import check_folder
from streamsvm.cli.parser import say
from streamsvm.cli.scoring.files import Scored, Scorer
from streamsvm.cli.scoring.worker import Workers
from streamsvm.cli.screen import Screen
from streamsvm.errors import ParameterError

_MOST_SAID = 20
"""Notes, and errors, of so many files are shown; of more only their number."""

_OPTIONS = ("model", "file", "output", "target", "columns", "parse_numbers", "keep", "decimal")
_FLAGS = ("probabilities", "allow_mismatch", "missing_tokens", "positive")


def are_folders(options: argparse.Namespace) -> bool:
    """Tell whether a folder is read, and a folder, which may not be there yet, is written."""
    if options.output is None or not Path(options.file).is_dir():
        return False
    output = Path(options.output)
    return output.is_dir() or not (output.exists() or output.suffix)


def run(options: argparse.Namespace) -> int:
    """Score the files that are not done; return the exit code: 1 if one cannot be scored."""
    _check(options)
    names = names_below(Path(options.file))
    scorer = Scorer(options, names)
    Path(options.output).mkdir(exist_ok=True)
    found = {i: scorer.done(i) for i in range(len(names))}
    due = [i for i, scored in found.items() if scored is None]
    totals = _Totals(names, [scored for scored in found.values() if scored is not None])
    jobs = min(options.jobs or 1, len(due))
    with Screen("scoring", len(names)) as screen:
        if links := links_left_out(Path(options.file)):
            screen.say(
                f"links to folders, or to nothing, are left out: {len(links):,}, as {links[0]}"
            )
        results = _alone(scorer, due) if jobs < 2 else _by_workers(jobs, options, scorer, due)
        try:
            for i, scored in results:
                totals.add(i, scored, screen)
                screen.advance(totals.n_scored, f"of {len(names):,} files", totals.rate)
        except KeyboardInterrupt:
            screen.say(
                f"{totals.n_scored:,} of {len(names):,} files are done: run it again to go on"
            )
            raise
        finally:
            results.close()
    say(f"{totals.in_words(why_none(scorer.learner))} -> {options.output}")
    return 1 if totals.n_failed else 0


def _check(options: argparse.Namespace) -> None:
    """Refuse options that are for one result, and a result among what is read."""
    for name in ("target", "positive"):
        if getattr(options, name) is not None:
            raise ParameterError(
                f"--{name} evaluates: leave --output out, or let it be a file of all predictions"
            )
    output, folder = Path(options.output).resolve(), Path(options.file).resolve()
    if output.is_relative_to(folder) or folder.is_relative_to(output):
        raise ParameterError(f"--output {options.output}: name a folder apart from the input")
    check_folder("--output", Path(options.output), output if output.is_dir() else output.parent)


def _alone(scorer: Scorer, due: Sequence[int]) -> Generator[tuple[int, Scored]]:
    """Yield what comes of files, scored in this process."""
    for i in due:
        yield i, scorer.score(i)


def _by_workers(
    jobs: int, options: argparse.Namespace, scorer: Scorer, due: Sequence[int]
) -> Generator[tuple[int, Scored]]:
    """Yield what comes of files, scored by other processes."""
    scorer.compile_for(due)
    given = {name: getattr(options, name) for name in (*_OPTIONS, *_FLAGS)}
    workers, open_ = Workers(jobs, given, scorer, due), set(due)
    try:
        while open_:
            i, scored = workers.results.get()
            if scored.error:
                scorer.sweep(i)  # a process that was killed leaves one
            open_.remove(i)
            yield i, scored
    finally:
        workers.end()
        for i in open_:
            scorer.sweep(i)


class _Totals:
    """Sums over all files of `names`; `done` is what earlier runs have done."""

    def __init__(self, names: Sequence[str], done: Sequence[Scored]) -> None:
        self._names, self._n_before, self._start = names, len(done), time.monotonic()
        self._rows = sum(scored.rows for scored in done)
        self._unusable = sum(scored.unusable for scored in done)
        self.n_scored, self.n_failed, self._new_rows = len(done), 0, 0
        self._said: dict[str, int] = {"not scored": 0, "note": 0}
        self._noted, self._n_as_noted = set[str](), 0

    def add(self, i: int, scored: Scored, screen: Screen) -> None:
        """Add what came of a file, and show what was said of it."""
        if scored.error:
            self.n_failed += 1
            self._say("not scored", [f"{self._names[i]}: not scored: {scored.error}"], screen)
            return
        if scored.notes:
            self._note(i, scored.notes.strip().splitlines(), screen)
        self.n_scored += 1
        self._rows += scored.rows
        self._new_rows += scored.rows
        self._unusable += scored.unusable

    def _note(self, i: int, notes: list[str], screen: Screen) -> None:
        """Say notes on a file, but those that were said of another."""
        new = {note.replace(self._names[i], ""): note for note in notes}
        self._n_as_noted += not self._noted.isdisjoint(new)
        new = {same: note for same, note in new.items() if same not in self._noted}
        if len(self._noted) < _MOST_SAID:
            self._noted |= {*new}
        if new:
            self._say("note", [*new.values()], screen)

    def _say(self, kind: str, lines: Sequence[str], screen: Screen) -> None:
        self._said[kind] += 1
        if self._said[kind] <= _MOST_SAID:
            screen.say(*lines)
        if self._said[kind] == _MOST_SAID:
            screen.say("(what is said of further files is not shown)")

    def rate(self) -> str:
        """Return the speed in words."""
        seconds = max(1e-9, time.monotonic() - self._start)
        failed = f"  {self.n_failed:,} not scored" if self.n_failed else ""
        return f"{self._new_rows:,} rows  {self._new_rows / seconds:,.0f} rows/s{failed}"

    def in_words(self, why: Any) -> str:
        """Return the totals; `why` rows may have no prediction."""
        text = f"{self._rows:,} rows of {self.n_scored:,} files"
        if self._n_before:
            text += f", {self._n_before:,} of them done before"
        if self._unusable:
            text += f", {self._unusable:,} rows without a prediction{why}"
        if self.n_failed:
            text += f"; {self.n_failed:,} files could not be scored"
        if self._n_as_noted:
            text += f"; notes as above on {self._n_as_noted:,} more"
        return text
