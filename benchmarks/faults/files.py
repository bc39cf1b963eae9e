"""Faults of files."""

import os
import resource
import stat
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import streamsvm
from benchmarks.faults.checkpoints import write
from benchmarks.faults.trial import command, examples, expect, fault, refused

_SGD = ("--target", "y", "--learner", "sgd", "--no-monitor", "--quiet", "--json")


@fault("zeroed bytes in a file that has checksums of its pages", "one sentence, nothing is learnt")
def zeroed(folder: Path) -> None:
    path = folder / "f.parquet"
    table = pa.Table.from_pylist(examples(20_000))
    pq.write_table(table, path, write_page_checksum=True, compression="none")
    raw = bytearray(path.read_bytes())
    raw[100_000:108_500] = bytes(8500)
    path.write_bytes(raw)
    refused(command("replay", path, *_SGD), "f.parquet")


@fault("a text that is not UTF-8", "one dead letter")
def not_utf8(folder: Path) -> None:
    path = folder / "f.parquet"
    texts = ["abc"] * 1000
    texts[300] = "XYZ"
    table = pa.Table.from_pylist(examples(1000)).append_column("t", pa.array(texts))
    pq.write_table(table, path, use_dictionary=False, compression="none", write_statistics=False)
    path.write_bytes(path.read_bytes().replace(b"XYZ", b"\xff\xfe\xfd"))
    said = command("replay", path, *_SGD, "--dead-letters", folder / "l.jsonl")
    expect(said.code == 0 and said.report["learnt"] == 999, said)


@fault("an encrypted file", "it is called so")
def encrypted(folder: Path) -> None:
    path = folder / "f.parquet"
    path.write_bytes(b"PARE" + bytes(1000) + b"PARE")
    refused(command("replay", path, *_SGD), "encrypted")


@fault(
    "`predict` on a file whose numeric column is text, or that lacks most columns",
    "refused; `--allow-mismatch` predicts nevertheless",
)
def other_columns(folder: Path) -> None:
    path, model = write(folder / "f.parquet"), folder / "m.svm"
    expect(command("replay", path, *_SGD, "--save", model).code == 0)
    found = pq.read_table(path).to_pylist()
    for i, change in enumerate(
        (lambda e: e | {"a": str(e["a"])}, lambda e: {"other": e["a"]}, lambda e: {"y": e["y"]})
    ):
        other = folder / f"{i}.parquet"
        pq.write_table(pa.Table.from_pylist([change(e) for e in found]), other)
        out = folder / f"{i}.out.parquet"
        refused(command("predict", model, other, "--out", out), f"{i}.parquet")
        expect(not out.exists())
    said = command("predict", model, folder / "0.parquet", "--out", out, "--allow-mismatch")
    expect(said.code == 0 and out.exists(), said)


@fault("a target of quantities, or of 3,000 values", "refused at once: this looks like regression")
def regression(folder: Path) -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=20_000)
    for name, y in (("f", a + rng.normal(size=a.size)), ("i", rng.integers(0, 3000, a.size))):
        path = folder / f"{name}.parquet"
        pq.write_table(pa.table({"a": a, "y": y}), path)
        start = time.perf_counter()
        refused(command("replay", path, "--target", "y", "--quiet"), "regression")
        expect(time.perf_counter() - start < 20.0, "it took long")


@fault("a `--report` folder that cannot be written", "the report is printed, exit code 1 or 2")
def no_folder(folder: Path) -> None:
    path = write(folder / "f.parquet")
    (folder / "file").write_text("")
    said = command("replay", path, *_SGD, "--report", folder / "file" / "report")
    expect(said.code in (1, 2) and "Traceback" not in said.error, said)
    # It becomes a file while the run goes on.
    from streamsvm.cli import history

    original = history.write

    def full(*arguments: Any) -> Any:
        raise OSError(28, "No space left on device", str(folder / "report" / "history.parquet"))

    history.write = full  # type: ignore[assignment]
    try:
        said = command("replay", path, *_SGD, "--report", folder / "report")
    finally:
        history.write = original
    expect(said.code == 1 and said.report["learnt"] == 1000, said)
    expect("history.parquet" in said.error and "No space" in said.error, said.error)


@fault("a full disk", "one sentence that names the file; the older file stays as it was")
def full_disk(folder: Path) -> None:
    import multiprocessing

    path, model = write(folder / "f.parquet"), folder / "m.svm"
    expect(command("replay", path, *_SGD, "--save", model).code == 0)
    before = model.read_bytes()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_limited, args=(path, model, queue))
    process.start()
    code, error = queue.get(timeout=60)
    process.join()
    expect(code == 1 and "m.svm" in error and error.count("\n") == 1, code, error)
    expect(model.read_bytes() == before)


def _limited(path: Path, model: Path, queue: Any) -> None:
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    said = command("replay", path, *_SGD, "--save", model)
    queue.put((said.code, said.error))


@fault(
    "`--save` to a device or pipe, through a symbolic link, over a file with a mode of its own",
    "devices and pipes are refused; the link stays one; the mode is kept",
)
def kinds_of_files(folder: Path) -> None:
    path = write(folder / "f.parquet")
    os.mkfifo(folder / "pipe")
    for place in ("/dev/null", folder / "pipe"):
        refused(command("replay", path, *_SGD, "--save", place), str(place))
    real, link = folder / "real.svm", folder / "link.svm"
    real.write_bytes(b"")
    real.chmod(0o640)
    link.symlink_to(real)
    expect(command("replay", path, *_SGD, "--save", link).code == 0)
    expect(link.is_symlink() and stat.S_IMODE(real.stat().st_mode) == 0o640)
    expect(streamsvm.load(real) is not None)
