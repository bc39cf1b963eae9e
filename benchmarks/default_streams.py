"""How the defaults do on streams of all kinds: ``python -m benchmarks.default_streams``.

For each stream, the progressive accuracy in percent of a kernel learner for each scale (rows
divided by the standard deviations of the first 1,024, or raw rows) and for 1, 4 and 16 times the
gamma of the rule; in brackets that on the first 1,024 events, by which the best of the six is
marked. Then that of the marked one with a quarter of its gamma and ten times its C; of the learner
with its defaults, which finds all this out while it learns, and of the rule; and both behind a
`StandardScaler`, where the defaults try three widths. Names of streams select some of them;
``--rows N`` is the number of rows taken of each, 5,000; ``--C C`` is the C of all, which is then
not tried; ``--several lasvm`` takes `LASVMClassifier` for several classes, too.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from river.datasets import synth

from benchmarks.common import error_of_rows, numeric, river_streams
from benchmarks.golden.problems import FOLDER
from streamsvm import LaRankClassifier, LASVMClassifier, StandardScaler, kernels
from streamsvm.models.kernel.race import SMOOTHER
from streamsvm.models.kernel.trial import WIDTHS

FIRST = 1024
Stream = tuple[np.ndarray, np.ndarray]
"""Rows, float32 (n, d), and labels."""


def _one_hot(column: pa.ChunkedArray) -> np.ndarray:
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        return np.nan_to_num(column.to_numpy().astype(np.float32)).reshape(-1, 1)
    values = np.array(column.cast(pa.string()).fill_null("").to_pylist())
    return (values[:, None] == np.unique(values)).astype(np.float32)


def _file(name: str) -> Callable[[int], Stream]:
    """Return a reader of a Parquet file; text becomes one-hot columns."""

    def read(n: int) -> Stream:
        table = pq.read_table(FOLDER / f"{name}.parquet").slice(0, n)
        if "features" in table.column_names:
            rows = np.stack(table["features"].to_numpy())
        else:
            names = [c for c in table.column_names if c != "label"]
            rows = np.hstack([_one_hot(table[c]) for c in names])
        return np.ascontiguousarray(rows, np.float32), np.array(table["label"].to_pylist())

    return read


def _text(name: str) -> Callable[[int], Stream]:
    """Return a reader of texts as counts of the words of the first messages."""

    def read(n: int) -> Stream:
        table = pq.read_table(FOLDER / f"{name}.parquet")
        order = np.random.default_rng(0).permutation(len(table))[:n]
        table = table.take(order)
        column: dict[str, int] = {}
        texts = [text.lower().split() for text in table["text"].to_pylist()]
        for word in itertools.chain.from_iterable(texts):
            column.setdefault(word, len(column))
        rows = np.zeros((len(texts), min(len(column), 5000)), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text:
                if column[word] < rows.shape[1]:
                    row[column[word]] += 1
        return rows, np.array(table["label"].to_pylist())

    return read


def _events(make: Callable[[], Any]) -> Callable[[int], Stream]:
    """Return a reader of one of River's data sets or generators."""

    def read(n: int) -> Stream:
        names: dict[str, int] = {}
        rows, labels = [], []
        for x, y in itertools.islice(make(), n):
            row = numeric(x)
            for name in row:
                names.setdefault(name, len(names))
            rows.append(row)
            labels.append(y)
        dense = np.zeros((len(rows), len(names)), np.float32)
        for r, row in enumerate(rows):
            for name, value in row.items():
                dense[r, names[name]] = value
        return dense, np.array(labels)

    return read


def _rivers(n: int) -> dict[str, Callable[[], Any]]:
    known = river_streams(n) | {
        "hyperplane": lambda: synth.Hyperplane(seed=1, n_features=10, mag_change=0.001)
    }
    shown = {
        "Agrawal, gradual": "Agrawal slow",
        "random RBF, drift": "random RBF drift",
        "LED, drift": "LED drift",
        "mixed, abrupt": "mixed",
        "sine, abrupt": "sine",
    } | {f"{name}, abrupt": f"{name} drift" for name in ("SEA", "Agrawal", "STAGGER")}
    left_out = ("SEA, gradual", "sine, gradual")
    found = {shown.get(name, name): known[name] for name in known if name not in left_out}
    return found | {"waveform": lambda: synth.Waveform(seed=1, has_noise=True)}


FILES = (
    "chessboard", "elec2", "weather", "letter_train", "covtype_first20k", "covtype_sample10k",
    "usps_train", "banana", "adult_train", "adult_raw_train", "mnist_train", "ocr_letters_train",
)  # fmt: skip
TEXTS = ("sms_spam", "sentence_polarity")


def streams(n: int) -> dict[str, Callable[[int], Stream]]:
    """Return the readers of all streams by name."""
    found = {name: _file(name) for name in FILES} | {name: _text(name) for name in TEXTS}
    return found | {name: _events(make) for name, make in _rivers(n).items()}


def factors_of(x: np.ndarray) -> np.ndarray:
    """Return 1 / standard deviation of each column; 1 for columns of zeros and ones."""
    deviations = x.std(axis=0, dtype=np.float64)
    is_flag = ((x == 0.0) | (x == 1.0)).all(axis=0)
    return np.where(is_flag | (deviations == 0.0), 1.0, 1.0 / np.maximum(deviations, 1e-12))


def right(cls: Any, x: np.ndarray, y: np.ndarray, width: float, C: float) -> np.ndarray:
    """Return whether each row was predicted right before it was learnt."""
    total = float(x[:FIRST].var(axis=0, dtype=np.float64).sum())
    model = cls(kernel=kernels.RBF(gamma=width / total), C=C, seed=1)
    return np.array(model.predict_then_learn_many(x, y.tolist()), dtype=object) == y


def defaults(cls: Any, x: np.ndarray, y: np.ndarray, C: float | str) -> str:
    """Return the accuracies of the defaults and the rule, without and with a scaler, as cells."""
    learners = cls(C=C, seed=1), cls(C=C, scale=False, gamma="scale", seed=1)
    models = *learners, *(StandardScaler() | learner.clone() for learner in learners)
    return " | ".join(f"{100.0 - error_of_rows(model, x, y):.1f}" for model in models)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--C", type=float)
    parser.add_argument("--several", choices=("larank", "lasvm"), default="larank")
    given = parser.parse_args()
    C = given.C or 1.0
    after = "C 10 | defaults | rule | scaler, defaults | scaler, rule"
    print(f"| stream | scaled 1 | 4 | 16 | raw 1 | 4 | 16 | {after} |")
    print("|---" * 12 + "|")
    for name, read in streams(given.rows).items():
        if given.names and name not in given.names:
            continue
        x, y = read(given.rows)
        is_lasvm = len(np.unique(y)) <= 2 or given.several == "lasvm"
        cls = LASVMClassifier if is_lasvm else LaRankClassifier
        scaled = x * factors_of(x[:FIRST]).astype(np.float32)
        candidates = list(itertools.product((scaled, x), WIDTHS))
        found = [right(cls, rows, y, width, C) for rows, width in candidates]
        picked = int(np.argmax([of[:FIRST].mean() for of in found]))
        rows, width = candidates[picked]
        found.append(right(cls, rows, y, width * SMOOTHER[0], C * SMOOTHER[1]))
        cells = [f"{100.0 * of.mean():.1f} ({100.0 * of[:FIRST].mean():.1f})" for of in found]
        cells[picked] = f"**{cells[picked]}**"
        after = defaults(cls, x, y, given.C or "auto")
        print(f"| {name} | {' | '.join(cells)} | {after} |", flush=True)


if __name__ == "__main__":
    main()
