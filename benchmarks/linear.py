"""Linear learners against their peers: ``python -m benchmarks.linear [part ...]``.

Parts: ``events`` (dense dicts), ``classes`` (of several classes), ``text`` (sparse dicts),
``batches`` (sparse rows), ``parquet`` (10,000,000 x 20, or as many rows as ``--rows`` says),
``passes`` (objectives against LIBLINEAR's), ``conditioning`` (SGD-QN against SVMSGD2). All by
default; systems take turns, medians are shown.
"""

from __future__ import annotations

import argparse
import gzip
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse
from river import linear_model

from benchmarks.linear_paces import (
    OURS,
    Events,
    classes,
    events,
    like_rcv1,
    money_fx,
    pace,
    text,
)
from benchmarks.linear_passes import conditioning, passes
from connectors import ParquetSource
from streamsvm import SVMSGDClassifier
from streamsvm.run.runner import Run


def batches(svmsgd2: str | None = None) -> None:
    """Sparse rows in batches, one pass: in memory, and everybody from files of their own format."""
    plain = {"SGD, t0 10,000": lambda: SVMSGDClassifier(averaged=False, t0=1e4)}
    for title, (rows, y) in {
        "200,000 rows of 47,000 features, 75 active": like_rcv1(200_000),
        "Reuters, money-fx": money_fx(),
    }.items():
        print(title)
        for name, make in (OURS | plain).items():
            make().learn_many(rows[:3000], y[:3000])
            times: dict[str, list[float]] = {"learn_many": [], "predict_then_learn_many": []}
            for _ in range(5):
                for way, found in times.items():
                    model = make()
                    start = time.perf_counter()
                    predicted = getattr(model, way)(rows, y)
                    found.append(time.perf_counter() - start)
            wrong = 100.0 * np.mean(np.array(predicted) != y)
            for way, found in times.items():
                error = f"   error {wrong:5.2f} %" if way.startswith("predict") else ""
                _told(f"{name:16} {way}", found, error)
        _from_parquet(rows, y)
        _vowpal_wabbit(rows, y)
        if svmsgd2:
            _svmsgd2(svmsgd2, rows, y)


def _told(name: str, seconds: list[float], note: str = "") -> None:
    low, middle, high = (1e3 * t for t in (min(seconds), np.median(seconds), max(seconds)))
    print(f"  {name:41} {middle:7.1f} ms ({low:.1f} to {high:.1f}){note}", flush=True)


def _from_parquet(rows: scipy.sparse.csr_matrix, y: np.ndarray) -> None:
    """Print the time of progressive runs over a file of lists, and of pyarrow alone."""
    start = pa.array(rows.indptr.astype(np.int32))
    lists = [pa.ListArray.from_arrays(start, pa.array(a)) for a in (rows.indices, rows.data)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(pa.table([*lists, pa.array(y)], ["indices", "values", "label"]), path)
        alone, runs = [], []
        for _ in range(5):
            begin = time.perf_counter()
            for batch in pq.ParquetFile(path).iter_batches(65_536):
                [batch.column(i).values.to_numpy() for i in (0, 1)]
            alone.append(time.perf_counter() - begin)
            begin = time.perf_counter()
            assert Run(ParquetSource(path, "label"), SVMSGDClassifier()).execute().rows == len(y)
            runs.append(time.perf_counter() - begin)
        _told("pyarrow alone, Parquet", alone)
        _told("SVMSGDClassifier, Parquet, progressive", runs)


def _svmsgd2(program: str, rows: scipy.sparse.csr_matrix, y: np.ndarray) -> None:
    """Print the time of Bottou's svmsgd2, one pass: all of it, and its loop by its own clock."""
    pairs = np.empty(rows.nnz, [("column", "<i4"), ("value", "<f4")])
    pairs["column"], pairs["value"] = rows.indices, rows.data
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.bin.gz"
        with gzip.open(path, "wb", compresslevel=1) as file:
            for i, label in enumerate(y.tolist()):
                own = pairs[rows.indptr[i] : rows.indptr[i + 1]]
                file.write(bytes([label]) + struct.pack("<i", len(own)) + own.tobytes())
        whole, loops = [], []
        for _ in range(5):
            command = [program, "-lambda", "1e-4", "-epochs", "1", str(path)]
            begin = time.perf_counter()
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            whole.append(time.perf_counter() - begin)
            loops.append(float(told.split("training time")[1].split()[0]))
        _told("svmsgd2, its own format", whole)
        _told("svmsgd2, its loop in memory", loops)


def _vowpal_wabbit(rows: scipy.sparse.csr_matrix, y: np.ndarray) -> None:
    """Print the time of a pass of Vowpal Wabbit from its own cache file, and its loss."""
    try:
        import vowpalwabbit
    except ImportError:
        print("  Vowpal Wabbit: pip install vowpalwabbit")
        return
    with tempfile.TemporaryDirectory() as folder:
        path, cache = Path(folder) / "rows.vw", Path(folder) / "rows.cache"
        with path.open("w") as file:
            for i in range(len(y)):
                part = slice(rows.indptr[i], rows.indptr[i + 1])
                listed = zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True)
                file.write(f"{1 if y[i] else -1} | {' '.join(f'{c}:{v:.6g}' for c, v in listed)}\n")
        command = f"--loss_function hinge -b 18 --quiet --cache_file {cache}"
        vowpalwabbit.Workspace(f"{command} -d {path}").finish()
        path.write_text("")
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            workspace = vowpalwabbit.Workspace(f"{command} -d {path}")
            seconds.append(time.perf_counter() - start)
            seen = workspace.get_weighted_examples()
            loss = workspace.get_sum_loss() / max(seen, 1)
            workspace.finish()
        _told("Vowpal Wabbit, its cache", seconds, f"   {seen:,.0f} rows, loss {loss:.3f}")


def write_parquet(path: Path, n: int) -> None:
    """Write n rows of 20 columns of single precision and a label, 2^20 a group as by default."""
    rng, w = np.random.default_rng(0), np.random.default_rng(1).normal(size=20)
    writer: Any = None
    for start in range(0, n, 2**20):
        x = rng.normal(size=(min(2**20, n - start), 20)).astype(np.float32)
        y = x @ w + rng.normal(size=len(x)) > 0.0
        table = pa.table({**{f"f{i}": x[:, i] for i in range(20)}, "label": y})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=2**20)
    writer.close()


def _alone(path: Path, size: int, threads: bool) -> float:
    """Return rows a second of pyarrow alone, into one NumPy matrix a batch."""
    start, n = time.perf_counter(), 0
    for batch in pq.ParquetFile(path).iter_batches(size, use_threads=threads):
        np.column_stack([batch.column(i).to_numpy() for i in range(20)])
        n += batch.num_rows
    return n / (time.perf_counter() - start)


def _ours(path: Path, make: Callable[[], Any]) -> float:
    """Return rows a second of a progressive run."""
    source = ParquetSource(path, target="label", batch_size=65_536)
    start = time.perf_counter()
    report = Run(source, make()).execute()
    return report.rows / (time.perf_counter() - start)


def _events_of(rows: pa.Table | pa.RecordBatch) -> Events:
    return [({k: v for k, v in r.items() if k != "label"}, r["label"]) for r in rows.to_pylist()]


def _rivers(path: Path) -> float:
    """Return rows a second of River's learner, which takes dicts alone."""
    start, n, model = time.perf_counter(), 0, linear_model.LogisticRegression()
    for batch in pq.ParquetFile(path).iter_batches(4096):
        for x, y in _events_of(batch):
            model.predict_one(x)
            model.learn_one(x, y)
            n += 1
    return n / (time.perf_counter() - start)


def parquet(n: int) -> None:
    """Progressive training from a file, against reading it, and against River."""
    with tempfile.TemporaryDirectory() as folder:
        path, few = Path(folder) / "rows.parquet", Path(folder) / "few.parquet"
        write_parquet(path, n)
        write_parquet(few, 20_000)
        for make in OURS.values():
            _ours(few, make)
        ways = {
            f"pyarrow alone, {size:,} rows a batch{', threads' if threads else ''}": (
                lambda size=size, threads=threads: _alone(path, size, threads)
            )
            for size in (4096, 16_384, 65_536)
            for threads in (False, True)
        }
        ways |= {name: lambda make=make: _ours(path, make) for name, make in OURS.items()}
        ways["River LogisticRegression, from the file"] = lambda: _rivers(few)
        listed = _events_of(pq.read_table(few))
        ways["River LogisticRegression, dicts in memory"] = lambda: (
            1e6 / pace(linear_model.LogisticRegression, listed)[0]
        )
        runs: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(5):
            for name, way in ways.items():
                runs[name].append(way())
        for name, found in runs.items():
            low, middle, high = min(found) / 1e6, np.median(found) / 1e6, max(found) / 1e6
            print(f"  {name:46} {middle:6.3f} M rows/s ({low:.3f} to {high:.3f})", flush=True)


PARTS: dict[str, Callable[[], None]] = {
    "events": events,
    "classes": classes,
    "text": text,
    "batches": batches,
    "passes": passes,
    "conditioning": conditioning,
}


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "parquet", []], default=[])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument(
        "--svmsgd2", help="the program, of Bottou's sgd-2.1 (svm/old), to compare batches with"
    )
    options = parser.parse_args()
    for name in options.parts or [*PARTS, "parquet"]:
        print(f"== {name}", flush=True)
        if name == "parquet":
            parquet(options.rows)
        elif name == "batches":
            batches(options.svmsgd2)
        else:
            PARTS[name]()


if __name__ == "__main__":
    main()
