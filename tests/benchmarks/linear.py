"""Linear learners against their peers: ``python -m tests.benchmarks.linear [part ...]``.

Parts: ``events`` (dense dicts), ``text`` (sparse dicts), ``batches`` (sparse rows), ``parquet``
(10,000,000 x 20, or as many rows as ``--rows`` says), ``passes`` (objectives against LIBLINEAR's),
``conditioning`` (SGD-QN against SVMSGD2). All by default; systems take turns, medians are shown.
"""

from __future__ import annotations

import argparse
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
from sklearn.svm import LinearSVC

from connectors import ParquetSource
from streamsvm import SGDQNClassifier, SVMSGDClassifier
from streamsvm.runner import Run
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
    """Print the pace of models on the same events, taking turns."""
    for make in models.values():
        pace(make, events[:2000])
    runs = {name: [] for name in models}  # type: dict[str, list[tuple[float, float]]]
    for _ in range(repeats):
        for name, make in models.items():
            runs[name].append(pace(make, events))
    print(title)
    for name, found in runs.items():
        times = sorted(t for t, _ in found)
        print(
            f"  {name:26} {np.median(times):6.2f} us ({times[0]:.2f} to {times[-1]:.2f})"
            f"   error {found[0][1]:5.2f} %",
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
            compare(title, words(name, extractor), models, 3)
    reuters = pq.read_table(FOLDER / "reuters_moneyfx_train.parquet").to_pydict()
    names = [n for n in reuters if n != "label"]
    listed = zip(reuters[names[0]], reuters[names[1]], reuters["label"], strict=True)
    money = [(dict(zip(c, v, strict=True)), bool(y > 0)) for c, v, y in listed]
    compare("Reuters, money-fx", money, models, 3)
    rows, y = like_rcv1(20_000)
    wide = []
    for i in range(len(y)):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        keys = [f"w{c}" for c in rows.indices[part].tolist()]
        wide.append((dict(zip(keys, rows.data[part].tolist(), strict=True)), bool(y[i])))
    compare("generated, 47,000 features, 75 active", wide, models, 3)


def batches() -> None:
    """Sparse rows in batches, one pass, against Vowpal Wabbit reading its cache."""
    rows, y = like_rcv1(200_000)
    for name, make in OURS.items():
        make().learn_many(rows[:3000], y[:3000])
        model = make()
        start = time.perf_counter()
        predicted = model.predict_then_learn_many(rows, y)
        seconds = time.perf_counter() - start
        wrong = 100.0 * np.mean(np.array(predicted) != y)
        print(f"  {name:26} {seconds:6.3f} s   progressive error {wrong:5.2f} %", flush=True)
    _vowpal_wabbit(rows, y)


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
        start = time.perf_counter()
        workspace = vowpalwabbit.Workspace(f"{command} -d {path}")
        seconds = time.perf_counter() - start
        seen = workspace.get_weighted_examples()
        loss = workspace.get_sum_loss() / max(seen, 1)
        workspace.finish()
        print(f"  {'Vowpal Wabbit, its cache':26} {seconds:6.3f} s   {seen:,.0f} rows, {loss:.3f}")


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
    source = ParquetSource(path, target="label", batch_size=16_384)
    start = time.perf_counter()
    report = Run(source, make()).execute()
    return report.rows / (time.perf_counter() - start)


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
        runs: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(5):
            for name, way in ways.items():
                runs[name].append(way())
        for name, found in runs.items():
            low, middle, high = min(found) / 1e6, np.median(found) / 1e6, max(found) / 1e6
            print(f"  {name:46} {middle:5.2f} M rows/s ({low:.2f} to {high:.2f})", flush=True)
        rows = pq.read_table(few).to_pylist()
        listed = [({k: v for k, v in r.items() if k != "label"}, r["label"]) for r in rows]
        micro, _ = pace(linear_model.LogisticRegression, listed)
        print(f"  {'River LogisticRegression, dicts in memory':46} {1 / micro:5.3f} M rows/s")
        start, model = time.perf_counter(), linear_model.LogisticRegression()
        for batch in pq.ParquetFile(few).iter_batches(4096):
            for x in batch.to_pylist():
                label = x.pop("label")
                model.predict_one(x)
                model.learn_one(x, label)
        rate = 20_000 / (time.perf_counter() - start) / 1e6
        print(f"  {'River LogisticRegression, from the file':46} {rate:5.3f} M rows/s")


def _optimum(x: np.ndarray, y: np.ndarray, lam: float) -> tuple[LinearSVC, float, float]:
    """Return LIBLINEAR's squared hinge SVM without bias, its objective and seconds."""
    start = time.perf_counter()
    # Its loss has no half.
    best = LinearSVC(C=0.5 / (lam * len(y)), fit_intercept=False, tol=1e-5, max_iter=5000)
    best.fit(x, y)
    seconds = time.perf_counter() - start
    short = np.maximum(0.0, 1.0 - y * best.decision_function(x))
    return best, 0.5 * lam * float((best.coef_**2).sum()) + 0.5 * float(np.mean(short**2)), seconds


def _epochs(model: Any, x: np.ndarray, y: np.ndarray, passes: int) -> list[tuple[float, float]]:
    """Return objective, and seconds, after each pass; each has an order of its own."""
    rng, found = np.random.default_rng(0), []
    signs = (y > 0).tolist()
    for _ in range(passes):
        order = rng.permutation(len(y))
        rows, labels = x[order], np.array(signs)[order]
        start = time.perf_counter()
        model.learn_many(rows, labels)
        seconds = time.perf_counter() - start
        found.append((model.objective(x, y > 0), seconds))
    return found


def _variants(lam: float) -> dict[str, Any]:
    common = {"loss": "squared_hinge", "l2": lam, "bias_rate": 0.0}
    return {
        "SGD": SVMSGDClassifier(averaged=False, **common),
        "SVMSGD2": SVMSGDClassifier(averaged=False, skip="auto", **common),
        "ASGD": SVMSGDClassifier(averaged=True, **common),
        "SGD-QN": SGDQNClassifier(**common),
    }


def passes() -> None:
    """Objective (excess over the optimum) and test error after 1, 2 and 5 passes."""
    letter = problems.letter()
    sets = {
        "Adult": problems.adult(),
        "Letter, A against the rest": letter._replace(
            y=np.where(letter.y == "A", 1, -1), y_test=np.where(letter.y_test == "A", 1, -1)
        ),
        "MNIST, 8 against the rest": problems.mnist_8(),
    }
    for title, problem in sets.items():
        x, y = np.ascontiguousarray(problem.x, np.float32), np.where(problem.y > 0, 1, -1)
        lam = 1e-4
        best, optimum, seconds = _optimum(x, y, lam)
        truth = np.where(problem.y_test > 0, 1, -1)
        wrong = 100.0 * np.mean(best.predict(problem.x_test) != truth)
        print(f"{title}: LIBLINEAR {seconds:.3f} s, objective {optimum:.5f}, test {wrong:.2f} %")
        for name, model in _variants(lam).items():
            cells = []
            for found, seconds in _epochs(model, x, y, 5):
                error = 100.0 * np.mean(
                    (np.array(model.predict_many(problem.x_test)) > 0) != (truth > 0)
                )
                cells.append(f"+{100 * (found / optimum - 1):.1f} % {1e3 * seconds:.0f} ms")
            print(
                f"  {name:8} passes 1, 2, 5: {cells[0]}, {cells[1]}, {cells[4]}; test {error:.2f} %"
            )


def conditioned(n: int = 100_000, d: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Return dense rows of 500 features whose sizes fall evenly over a decade, and noisy labels."""
    rng = np.random.default_rng(0)
    sizes = 10.0 ** (-np.arange(d) / d)
    sizes /= np.sqrt((sizes**2).sum())
    x = (rng.normal(size=(n, d)) * sizes).astype(np.float32)
    w = rng.normal(size=d) / (sizes * np.sqrt(d))
    return x, np.where(x @ w + 0.5 * rng.normal(size=n) > 0.0, 1, -1)


def conditioning() -> None:
    """Passes that SGD-QN and SVMSGD2 need on badly conditioned rows, and what a pass costs."""
    x, y = conditioned()
    lam = 1e-5
    _, optimum, seconds = _optimum(x, y, lam)
    print(f"100,000 x 500, sizes over a decade: LIBLINEAR {seconds:.1f} s, objective {optimum:.5f}")
    for name in ("SVMSGD2", "SGD-QN"):
        found = _epochs(_variants(lam)[name], x, y, 20)
        excess = [100.0 * (cost / optimum - 1.0) for cost, _ in found]
        until = {
            goal: next((i + 1 for i, e in enumerate(excess) if e <= goal), None)
            for goal in (10.0, 5.0, 3.0)
        }
        middle = 1e3 * np.median([seconds for _, seconds in found])
        print(f"  {name:8} {middle:.0f} ms a pass; passes to within 10, 5, 3 %: {until}")
        print("    excess in %:", ", ".join(f"{e:.1f}" for e in excess), flush=True)


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
    options = parser.parse_args()
    for name in options.parts or [*PARTS, "parquet"]:
        print(f"== {name}", flush=True)
        if name == "parquet":
            parquet(options.rows)
        else:
            PARTS[name]()


if __name__ == "__main__":
    main()
