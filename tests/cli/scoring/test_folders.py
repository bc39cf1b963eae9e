"""`streamsvm predict` of a folder into a folder, by several processes."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamsvm
from streamsvm import LASVMClassifier
from streamsvm.cli.scoring import worker
from tests.interruptions import needs_ctrl_c
from tests.slow import slow

ROOT = Path(__file__).resolve().parents[3]
INPUTS = ["day=1/a.parquet", "day=1/b.parquet", "day=2/a.parquet"]


def table(n=300, seed=0):
    a, b = np.random.default_rng(seed).normal(size=(2, n))
    return pa.table({"a": a, "b": b, "key": pa.array(range(n))})


def save_model(C=1.0):
    rows = table(400, 9)
    x = np.column_stack([rows["a"], rows["b"]])
    frame = pa.RecordBatch.from_arrays([x[:, 0], x[:, 1]], ["a", "b"])
    model = LASVMClassifier(C=C, seed=1)
    model.learn_many(frame, x[:, 0] * x[:, 1] > 0)
    streamsvm.save(model, "m.svm")
    return model


@pytest.fixture(autouse=True)
def model(_folder):
    for seed, name in enumerate(INPUTS):
        Path("new", name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table(seed=seed), Path("new", name))
    return save_model()


@pytest.fixture
def predict(run):
    """Score the folder; return what is said."""

    def run_predict(*more, output="out", code=0):
        return run("predict", "m.svm", "new", "-o", output, *more, code=code).err

    return run_predict


def times():
    return {name: Path("out", name).stat().st_mtime_ns for name in INPUTS}


def files_below(folder):
    return sorted(p.relative_to(folder).as_posix() for p in Path(folder).rglob("*") if p.is_file())


def test_each_file_gets_the_rows_that_one_result_of_the_folder_has(predict):
    err = predict("--keep", "key,day", "--probabilities")
    assert "900 rows of 3 files -> out" in err and files_below("out") == INPUTS
    predict("--keep", "key,day", "--probabilities", output="w.parquet")
    parts = [pq.read_table(Path("out", name), partitioning=None) for name in INPUTS]
    assert pa.concat_tables(parts).equals(pq.read_table("w.parquet"))


def test_links_that_are_not_followed_are_counted(predict):
    Path("new/gone.parquet").symlink_to("nothing.parquet")
    Path("elsewhere").mkdir()
    Path("new/more").symlink_to(Path("elsewhere").resolve())
    assert "links to folders, or to nothing, are left out: 2, as new/gone.parquet" in predict()


def test_what_is_done_is_left_unless_anything_it_depends_on_has_changed(predict):
    values = table(seed=1).set_column(0, "a", pa.array([np.nan, np.inf] + [1.0] * 298))
    pq.write_table(values, Path("new", INPUTS[1]))
    assert "1 rows without a prediction (a value is not" in predict()
    before = times()
    err = predict()
    assert "900 rows of 3 files, 3 of them done before, 1 rows without" in err
    assert times() == before
    # What changes within a large file may leave its size and both ends as they are.
    os.utime(Path("new", INPUTS[2]), ns=(0, 10**18))
    assert "2 of them done before, 1 rows" in predict()
    before = times()
    pq.write_table(table(seed=7), Path("new", INPUTS[1]))
    assert "2 of them done before ->" in predict()
    now = times()
    assert [now[name] == before[name] for name in INPUTS] == [True, False, True]
    assert "done before" not in predict("--probabilities")
    save_model(C=3.0)
    assert "done before" not in predict("--probabilities")
    assert "3 of them done before" in predict("--probabilities")


def test_folders_of_one_column_have_one_type(predict):
    for name in ("day=__HIVE_DEFAULT_PARTITION__/a.parquet", "day=today/a.parquet"):
        Path("new", name).parent.mkdir()
        pq.write_table(table(), Path("new", name))
        err = predict("--keep", "day")
    assert "done before" not in err
    found = [pq.read_table(path, partitioning=None) for path in Path("out").rglob("*.parquet")]
    assert {part.schema.field("day").type for part in found} == {pa.string()}


def test_nothing_is_written_through_links_in_the_output(predict):
    before = Path("new", INPUTS[1]).read_bytes()
    Path("out").mkdir()
    Path("out/day=1").symlink_to("../new/day=1")
    Path("new/c.parquet").write_bytes(before)
    Path("out/c.parquet").symlink_to("../new/c.parquet")
    err = predict(code=1)
    assert "c.parquet: not scored: out/c.parquet is a link: results are written" in err
    assert f"{INPUTS[1]}: not scored: out/day=1 is a link" in err
    assert files_below("new") == sorted([*INPUTS, "c.parquet"])
    assert Path("new", INPUTS[1]).read_bytes() == Path("new/c.parquet").read_bytes() == before


def test_names_may_be_long_and_do_not_steer_the_terminal(predict):
    name = "n" * 247 + ".parquet"
    pq.write_table(table(), Path("new", name))
    Path("new/\x1b[2J.parquet").write_bytes(b"")
    err = predict(code=1)
    assert err.startswith("\\x1b[2J.parquet: not scored") and "\x1b" not in err
    assert files_below("out") == sorted([*INPUTS, name])


def test_a_file_without_any_value_is_scored_as_in_one_result_of_the_folder(predict):
    empty = pa.table({"a": pa.nulls(5), "b": pa.nulls(5), "key": pa.array(range(5))})
    pq.write_table(empty, "new/z.parquet")
    predict()
    predict(output="w.parquet")
    assert pq.read_table("out/z.parquet").equals(pq.read_table("w.parquet").slice(900))


def test_a_worker_ends_quietly_if_nobody_reads_its_answers(monkeypatch):
    monkeypatch.setattr(worker.signal, "signal", lambda *_: None)
    read, write = os.pipe()
    os.close(read)
    job = {"options": {"model": "gone.svm"}, "names": ["a"], "digest": ""}
    worker.main(io.StringIO(json.dumps(job) + "\n0\n"), os.fdopen(write, "w"))


def test_a_bad_file_is_named_and_does_not_stop_the_others(predict):
    # Processes do not import what lies in the current folder.
    Path("queue.py").write_text("raise SystemExit(3)")
    Path("new", INPUTS[1]).write_bytes(b"PAR1 no more")
    pq.write_table(table().slice(0, 0), "new/empty.parquet")
    pq.write_table(pa.table({"other": [1.0]}), "new/other.parquet")
    err = predict("--keep", "key", "--jobs", "2", code=1)
    assert f"{INPUTS[1]}: not scored: `new/{INPUTS[1]}` is truncated" in err
    assert "other.parquet: not scored" in err
    assert "600 rows of 3 files; 2 files could not be scored" in err
    done = [INPUTS[0], INPUTS[2], "empty.parquet"]
    assert files_below("out") == sorted(done)
    schemas = [pq.read_schema(Path("out", name)) for name in done]
    assert schemas[0].remove_metadata().equals(schemas[2].remove_metadata())
    assert pq.read_metadata("out/empty.parquet").num_rows == 0


def command(*more):
    return subprocess.Popen(
        [sys.executable, "-m", "streamsvm", "predict", "m.svm", "new", "-o", "out", *more],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def wait_for(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def children(pid):
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(i) for task in tasks for i in (task / "children").read_text().split()]


@slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
@needs_ctrl_c
def test_a_killed_process_costs_its_file_and_ctrl_c_ends_all_and_leaves_whole_files():
    big = pa.concat_tables([table(50_000, seed) for seed in range(20)])
    for i in range(4):
        pq.write_table(big, f"new/z{i}.parquet")
    process = command("--jobs", "2")

    def writing():
        below = files_below("out") if Path("out").exists() else []
        return [name for name in below if name.endswith(".partial") and ".z" in name]

    wait_for(lambda: len(writing()) == 2)
    first = children(process.pid)
    os.kill(first[0], signal.SIGKILL)
    wait_for(lambda: len(now := children(process.pid)) == 2 and now != first)
    wait_for(lambda: len(writing()) == 2)
    workers = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and "run it again to go on" in err, err
    assert "not scored: the process that scored it ended by signal 9" in err
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    left = files_below("out")
    assert {*INPUTS} <= {*left} and not any(name.endswith(".partial") for name in left)
    assert all(pq.read_table(Path("out", n), partitioning=None).num_rows for n in left)
