"""Linear learners against their peers: ``python -m tests.benchmarks.linear [part ...]``.

Parts: ``events`` (dense dicts), ``text`` (sparse dicts), ``batches`` (sparse rows), ``parquet``
(10,000,000 x 20, or as many rows as ``--rows`` says), ``passes`` (objectives against LIBLINEAR's),
``conditioning`` (SGD-QN against SVMSGD2). All by default; systems take turns, medians are shown.
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
from river import compose, datasets, feature_extraction, linear_model, preprocessing

from connectors import ParquetSource
from streamsvm import SGDQNClassifier, SVMSGDClassifier
from streamsvm.runner import Run
from tests.benchmarks.linear_passes import conditioning, passes
from tests.golden import problems
from tests.golden.problems import FOLDER

Events = list[tuple[dict[Any, float], bool]]

RIVERS: dict[str, Callable[[], Any]] = {
    "River PAClassifier": linear_model.PAClassifier,
    "River LogisticRegression": linear_model.LogisticRegression,
}
OURS: dict[str, Callable[[], Any]] = {
    "SVMSGDClassifier": SVMSGDClassifier,
    "SGDQNClassifier": SGDQNClassifier,
}


def pace(make: Callable[[], Any], events: Events) -> tuple[float, float]:
    """Return microseconds an event of predict_one and learn_one, and the progressive error."""
    model, wrong = make(), 0
    start = time.perf_counter()
    for x, y in events:
        wrong += model.predict_one(x) != y
        model.learn_one(x, y)
    return 1e6 * (time.perf_counter() - start) / len(events), 100.0 * wrong / len(events)


def compare(title: str, events: Events, models: dict[str, Any], repeats: int = 5) -> None:
    """Print the pace of models on the same events, taking turns: medians, and of ratios, too."""
    for make in models.values():
        pace(make, events[:2000])
    runs = {name: [] for name in models}  # type: dict[str, list[tuple[float, float]]]
    for _ in range(repeats):
        for name, make in models.items():
            runs[name].append(pace(make, events))
    print(title)
    times = {name: np.array([t for t, _ in found]) for name, found in runs.items()}
    for name, own in times.items():
        shares = (f"{np.median(times[river] / own):.1f}" for river in RIVERS)
        note = "" if name in RIVERS else f"   {' and '.join(shares)} times as fast as River's"
        print(
            f"  {name:26} {np.median(own):6.2f} us ({own.min():.2f} to {own.max():.2f})"
            f"   error {runs[name][0][1]:5.2f} %{note}",
            flush=True,
        )


def elec2() -> Events:
    """Return all of Elec2, in order of time."""
    rows = pq.read_table(FOLDER / "elec2.parquet").to_pylist()
    return [({k: float(v) for k, v in r.items() if k != "label"}, r["label"] == "UP") for r in rows]


def adult() -> Events:
    """Return Adult as dicts of the features that are not 0."""
    problem = problems.adult()
    events = []
    for row, label in zip(problem.x, problem.y.tolist(), strict=True):
        at = np.flatnonzero(row)
        events.append((dict(zip(at.tolist(), row[at].tolist(), strict=True)), bool(label > 0)))
    return events


def events() -> None:
    """Dense events as dicts: time by number of features, then errors on streams."""
    rng = np.random.default_rng(0)
    for d in (8, 20, 100):
        x = rng.normal(size=(20_000, d))
        y = (x[:, 0] + 0.5 * x[:, 1] + 0.3 * rng.normal(size=len(x)) > 0.0).tolist()
        rows = [{f"f{i}": v for i, v in enumerate(row)} for row in x.tolist()]
        compare(f"{d} features", list(zip(rows, y, strict=True)), OURS | RIVERS)
    rbf = feature_extraction.RBFSampler(gamma=1.0, n_components=100, seed=1)
    bananas = [(rbf.transform_one(x), y) for x, y in datasets.Bananas()]
    compare("Bananas, 100 random RBF features", bananas, OURS | RIVERS, 1)
    compare("Adult, 14 of 123 features", adult(), OURS | RIVERS, 1)
    scaled = {
        name: lambda make=make: compose.Pipeline(preprocessing.StandardScaler(), make())
        for name, make in (OURS | RIVERS).items()
    }
    compare("Elec2, scaled by River's StandardScaler", elec2(), scaled, 1)


def words(name: str, extractor: Any) -> Events:
    """Return a file of texts as words."""
    table = pq.read_table(FOLDER / f"{name}.parquet").to_pydict()
    highest = max(table["label"])
    labels = [label == highest for label in table["label"]]
    found = []
    for i in np.random.default_rng(0).permutation(len(labels)).tolist():
        extractor.learn_one(table["text"][i])
        found.append((dict(extractor.transform_one(table["text"][i])), labels[i]))
    return found


def like_rcv1(n: int, seed: int = 0) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """Return rows shaped as RCV1's: 47,000 features, about 75 active, of length 1."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, 47_001) ** 0.8
    columns = rng.choice(47_000, (n, 80), p=share / share.sum())
    values = rng.random((n, 80)).astype(np.float32)
    at = np.repeat(np.arange(n), 80)
    rows = scipy.sparse.csr_matrix((values.ravel(), (at, columns.ravel())), shape=(n, 47_000))
    norms = np.sqrt(rows.multiply(rows).sum(axis=1)).A1
    rows = scipy.sparse.diags(1.0 / norms).dot(rows).astype(np.float32).tocsr()
    rows.sum_duplicates()
    w = np.random.default_rng(99).normal(size=47_000)
    noise = 0.3 * rng.normal(size=n)
    return rows, rows @ w + noise > 0.0


def text() -> None:
    """Sparse events as dicts."""
    models = OURS | {"SVMSGD, hashed": lambda: SVMSGDClassifier(hashing=2**18)} | RIVERS
    for name in ("sms_spam", "sentence_polarity"):
        for extractor in (feature_extraction.BagOfWords(), feature_extraction.TFIDF()):
            title = f"{name}, {type(extractor).__name__}"
            compare(title, words(name, extractor), models, 9)
    compare("Reuters, money-fx", dicts(*money_fx(), int), models, 9)
    wide = dicts(*like_rcv1(20_000), lambda column: f"w{column}")
    compare("generated, 47,000 features, 75 active", wide, models, 9)


def dicts(rows: scipy.sparse.csr_matrix, y: np.ndarray, name: Callable[[int], Any]) -> Events:
    """Return sparse rows as events."""
    events = []
    for i, label in enumerate(y.tolist()):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        keys, values = map(name, rows.indices[part].tolist()), rows.data[part].tolist()
        events.append((dict(zip(keys, values, strict=True)), label))
    return events


def money_fx() -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """Return Reuters' articles, positive: about money and foreign exchange."""
    table = pq.read_table(FOLDER / "reuters_moneyfx_train.parquet").combine_chunks()
    columns, values = (table.column(name).chunk(0) for name in ("indices", "values"))
    start = columns.offsets.to_numpy()
    places = columns.flatten().to_numpy().copy()
    data = values.flatten().to_numpy().astype(np.float32)
    rows = scipy.sparse.csr_matrix((data, places, start - start[0]))
    rows.sort_indices()
    return rows, table.column("label").to_numpy() > 0


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
