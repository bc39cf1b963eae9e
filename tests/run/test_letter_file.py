"""Dead letters: each run has its own file, whatever other runs do at the same time."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from connectors import MemorySource
from streamsvm import SVMSGDClassifier
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run

GOOD = [({"a": 1.0}, True), ({"a": -1.0}, False)]
BAD = ({"a": float("inf")}, True)
EVENTS = (GOOD * 3 + [BAD]) * 100


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows(path):
    return [json.loads(line)["position"]["row"] for line in Path(path).read_text().splitlines()]


class Source(MemorySource):
    """Events in chunks of at most 100 rows."""

    def batches(self, size=None):
        return super().batches(100)


def run(checkpoint=None, stop_after=None, path=None, events=EVENTS):
    """Run to the end, or raise after so many chunks: as if killed."""
    chunks = []

    def progress(now):
        chunks.append(now.rows)
        if len(chunks) == stop_after:
            raise RuntimeError("killed")

    checkpoint = checkpoint and Checkpoint(checkpoint, every=200)
    options = {"checkpoint": checkpoint, "on_progress": progress}
    options["bad_events"] = BadEvents("dead-letter", path)
    with pytest.raises(RuntimeError, match="killed") if stop_after else nullcontext():
        return Run(Source(events), SVMSGDClassifier(), **options).execute()


ALL = [i for i, event in enumerate(EVENTS) if event is BAD]


@pytest.mark.parametrize("path", [None, "letters.jsonl"])
def test_a_resumed_run_leaves_the_letters_of_others(path):
    run("one.ckpt", 4, path)
    # Before, these went to the same file, and the resumed run cut them off.
    other = run("two.ckpt", path=path)
    plain = run(path=path)
    report = run("one.ckpt", path=path)
    files = [report.dead_letters, other.dead_letters, plain.dead_letters]
    assert len(set(files)) == 3
    assert [rows(file) for file in files] == [ALL] * 3
    if path is None:
        first, second = (f"{name}.ckpt.dead_letters.jsonl" for name in ("one", "two"))
        assert files == [first, second, "dead_letters.jsonl"]


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_a_resumed_run_continues_its_own(chunks):
    # The second run of this name must not take the letters of the first one for its own.
    run("run.ckpt")
    Path("run.ckpt").unlink()
    for _ in range(2):
        run("run.ckpt", chunks)
    assert run("run.ckpt").dead_letters == "run.ckpt.dead_letters.2.jsonl"
    assert rows("run.ckpt.dead_letters.2.jsonl") == rows("run.ckpt.dead_letters.jsonl") == ALL


def test_a_file_that_was_taken_away_is_made_again():
    run("run.ckpt", 4, "letters.jsonl")
    Path("letters.jsonl").rename("away.jsonl")
    run(path="letters.jsonl")
    report = run("run.ckpt", path="letters.jsonl")
    assert report.dead_letters == "letters.2.jsonl"
    assert rows("letters.jsonl") == ALL
    assert sorted({*rows("away.jsonl"), *rows("letters.2.jsonl")}) == ALL


def test_runs_without_bad_events_make_no_file():
    assert run(events=GOOD).dead_letters is None and not list(Path().iterdir())


def test_a_folder_that_cannot_be_written_ends_no_run(monkeypatch):
    monkeypatch.chdir("/proc")
    bad = BadEvents("dead-letter")
    report = Run(MemorySource(EVENTS), SVMSGDClassifier(), bad_events=bad).execute()
    assert report.learnt == 600 and report.bad == {"bad feature": 100}
    assert report.dead_letters is None and "dead_letters.jsonl" in (bad.unkept or "")
    with pytest.raises(OSError, match="proc"):
        run(path="/proc/letters.jsonl")
