"""How fast linear learners are event by event: parts of `benchmarks.linear`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse
from river import (
    compose,
    datasets,
    feature_extraction,
    linear_model,
    multiclass,
    preprocessing,
)
from sklearn.svm import LinearSVC

from benchmarks.common import events_of, numeric
from benchmarks.golden import problems
from benchmarks.golden.problems import FOLDER
from streamsvm import SGDQNClassifier, StandardScaler, SVMSGDClassifier

Events = list[tuple[dict[Any, float], Any]]

RIVERS: dict[str, Callable[[], Any]] = {
    "River PAClassifier": linear_model.PAClassifier,
    "River LogisticRegression": linear_model.LogisticRegression,
}
RIVERS_OF_SEVERAL: dict[str, Callable[[], Any]] = {
    "River one-vs-rest PAClassifier": lambda: multiclass.OneVsRestClassifier(
        linear_model.PAClassifier()
    ),
    "River one-vs-rest LogisticRegression": lambda: multiclass.OneVsRestClassifier(
        linear_model.LogisticRegression()
    ),
    "River SoftmaxRegression": linear_model.SoftmaxRegression,
}
OURS: dict[str, Any] = {
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


def compare(
    title: str, events: Events, ours: dict[str, Any], rivers: dict[str, Any], repeats: int = 5
) -> None:
    """Print the pace of models on the same events, taking turns: medians, and of ratios, too."""
    models = ours | rivers
    for make in models.values():
        pace(make, events[:2000])
    runs = {name: [] for name in models}  # type: dict[str, list[tuple[float, float]]]
    for _ in range(repeats):
        for name, make in models.items():
            runs[name].append(pace(make, events))
    print(title)
    times = {name: np.array([t for t, _ in found]) for name, found in runs.items()}
    for name, own in times.items():
        shares = (f"{np.median(times[river] / own):.1f}" for river in rivers)
        note = "" if name in rivers else f"   {' and '.join(shares)} times as fast as River's"
        print(
            f"  {name:36} {np.median(own):6.2f} us ({own.min():.2f} to {own.max():.2f})"
            f"   error {runs[name][0][1]:5.2f} %{note}",
            flush=True,
        )


def elec2() -> Events:
    """Return all of Elec2, in order of time."""
    return [(numeric(x), y == "UP") for x, y in events_of("elec2")]


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
        compare(f"{d} features", list(zip(rows, y, strict=True)), OURS, RIVERS)
    rbf = feature_extraction.RBFSampler(gamma=1.0, n_components=100, seed=1)
    bananas = [(rbf.transform_one(x), y) for x, y in datasets.Bananas()]
    compare("Bananas, 100 random RBF features", bananas, OURS, RIVERS, 1)
    compare("Adult, 14 of 123 features", adult(), OURS, RIVERS, 1)
    scaled = (
        {
            name: lambda make=make, scaler=scaler: compose.Pipeline(scaler(), make())
            for name, make in models.items()
        }
        for models, scaler in ((OURS, StandardScaler), (RIVERS, preprocessing.StandardScaler))
    )
    compare("Elec2, 8 features, pipelines with each library's StandardScaler", elec2(), *scaled)


def classes() -> None:
    """Dense events of several classes as dicts, scaled beforehand."""
    scaler = preprocessing.StandardScaler()
    segments = []
    for x, y in datasets.ImageSegments():
        scaler.learn_one(x)
        segments.append((scaler.transform_one(x), y))
    compare("ImageSegments, 7 classes, 18 features", segments, OURS, RIVERS_OF_SEVERAL)
    for title, problem, n in (
        ("Letter, 26 classes, 16 features", problems.letter(), 16_000),
        ("USPS, 10 classes, 256 features", problems.usps_10(), 2000),
    ):
        rows = [dict(enumerate(row)) for row in problem.x[:n].tolist()]
        events = list(zip(rows, problem.y[:n].tolist(), strict=True))
        compare(title, events, OURS, RIVERS_OF_SEVERAL, 3)
    _after_one_pass(problems.letter())


def _after_one_pass(problem: problems.Problem) -> None:
    """Print errors on test rows, of LIBLINEAR's optimum and of our learners after one pass."""
    print("Letter, errors on its test rows")
    labels = problem.y.tolist()
    for loss in ("hinge", "squared_hinge"):
        best = LinearSVC(C=1e4 / len(labels), loss=loss, max_iter=10_000).fit(problem.x, labels)
        found = {"LIBLINEAR": best.predict(problem.x_test)}
        for name, make in OURS.items():
            model = make(loss=loss)
            model.learn_many(problem.x, labels)
            found[name] = model.predict_many(problem.x_test)
        errors = (f"{k} {100.0 * np.mean(v != problem.y_test):.1f} %" for k, v in found.items())
        print(f"  {loss}: {', '.join(errors)}", flush=True)


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
    ours = OURS | {"SVMSGD, hashed": lambda: SVMSGDClassifier(hashing=2**18)}
    for name in ("sms_spam", "sentence_polarity"):
        for extractor in (feature_extraction.BagOfWords(), feature_extraction.TFIDF()):
            title = f"{name}, {type(extractor).__name__}"
            compare(title, words(name, extractor), ours, RIVERS, 9)
    compare("Reuters, money-fx", dicts(*money_fx(), int), ours, RIVERS, 9)
    wide = dicts(*like_rcv1(20_000), lambda column: f"w{column}")
    compare("generated, 47,000 features, 75 active", wide, ours, RIVERS, 9)


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
