"""Figures 5.3 to 5.6 of Bordes' thesis (2010, section 5.3.4): LaRank for label sequences.

Chunking CoNLL-2000: seconds against sentences (5.3; expected: linear, an exponent near 1), and the
share of the examples that are support patterns (5.4; fewer with greedy inference). Letters of OCR
words: what REPROCESS adds to the accuracy of the passive-aggressive algorithm (5.5), and the
accuracy by how many labels before a letter count (5.6). The published figures are plots.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import replication

from streamsvm import Chain, LaRankSequenceLabeler

PORTIONS = 6  # each twice as large as the one before
REPROCESS = (0, 1, 2, 5, 10)
ORDERS = (0, 1, 2, 3, 5, 7, 10)


def words_of(path: Path, limit: int | None) -> tuple[list[np.ndarray], list[list[str]]]:
    """Return words as arrays of pixels and a constant, a row a letter; and their letters."""
    table = pq.read_table(path).slice(0, limit)
    names = [name for name in table.column_names if name not in ("word_id", "position", "label")]
    pixels = [table[name].to_numpy() for name in names]
    x = np.column_stack([*pixels, np.ones(len(table))]).astype(np.float32)
    cuts = np.flatnonzero(np.diff(table["word_id"].to_numpy())) + 1
    letters = np.split(np.array(table["label"].to_pylist()), cuts)
    return np.split(x, cuts), [part.tolist() for part in letters]


def accuracy(model: Any, words: list[np.ndarray], letters: list[list[str]]) -> float:
    """Return the percentage of letters that are right."""
    pairs = zip(model.predict_many(words), letters, strict=True)
    right = [a == b for p, y in pairs for a, b in zip(p, y, strict=True)]
    return 100.0 * float(np.mean(right))


def chunking(options: Any) -> list[list[Any]]:
    """Write figures 5.3 and 5.4; return rows of the table."""
    table = pq.read_table(options.data / "conll2000_train.parquet").slice(0, options.limit)
    X, y = table.select(["tokens", "pos"]), table["chunks"].to_pylist()
    features, chain, times, shares, rows = [], Chain(), {}, {}, []
    sizes = [len(y) >> k for k in range(PORTIONS)][::-1]
    for size in sizes:
        features.append(chain.transform_many(X.slice(0, size).rename_columns(["0", "1"])))
    for inference, reprocess in (("greedy", 1), ("exact", 5)):
        LaRankSequenceLabeler(inference).learn_many(features[0], y[: sizes[0]])  # compiles
        seconds, kept = [], []
        for size, X_part in zip(sizes, features, strict=True):
            model = LaRankSequenceLabeler(inference, reprocess=reprocess, seed=0)
            start = time.process_time()
            model.learn_many(X_part, y[:size])
            seconds.append(time.process_time() - start)
            examples = model.n_tokens if inference == "greedy" else model.n_examples
            kept.append(100.0 * model.n_support_patterns / examples)
        times[inference], shares[inference] = (sizes, seconds), (sizes, kept)
        exponent = np.polyfit(np.log(sizes), np.log(np.maximum(seconds, 1e-4)), 1)[0]
        rows.append([f"5.3: exponent of the time, {inference}", f"{exponent:.2f}"])
        rows.append([f"5.4: support patterns, {inference}", f"{kept[-1]:.1f} %"])
    x = "sentences"
    replication.plot(options.out / "thesis_figure_5_3.png", times, x, "seconds", "xy", True)
    replication.plot(options.out / "thesis_figure_5_4.png", shares, x, "% kept", "x", True)
    return rows


def reading(options: Any) -> list[list[Any]]:
    """Write figures 5.5 and 5.6; return rows of the table."""
    train = words_of(options.data / "ocr_letters_train.parquet", options.limit)
    test = words_of(options.data / "ocr_letters_test.parquet", options.limit)

    def learnt(inference: str, order: int, reprocess: int) -> float:
        model = LaRankSequenceLabeler(inference, order, reprocess=reprocess, seed=0)
        model.learn_many(*train)
        return accuracy(model, *test)

    gains, orders, rows = {}, {}, []
    for inference, order in (("greedy", 10), ("exact", 1)):
        found = [learnt(inference, order, n_r) for n_r in REPROCESS]
        gains[inference] = REPROCESS, [a - found[0] for a in found]
        for n_r, a in zip(REPROCESS, found, strict=True):
            rows.append([f"5.5: accuracy, {inference}, n_R = {n_r}", f"{a:.2f} %"])
    orders["greedy"] = ORDERS, [learnt("greedy", k, 5) for k in ORDERS]
    orders["exact, k = 1"] = ORDERS, [learnt("exact", 1, 10)] * len(ORDERS)
    for k, a in zip(*orders["greedy"], strict=True):
        rows.append([f"5.6: accuracy, greedy, k = {k}", f"{a:.2f} %"])
    y = "gain in accuracy"
    replication.plot(options.out / "thesis_figure_5_5.png", gains, "n_R", y, points=True)
    replication.plot(options.out / "thesis_figure_5_6.png", orders, "k", "accuracy", points=True)
    return rows


def main() -> None:
    options = replication.options(__doc__, limit=None)
    rows = chunking(options) + reading(options)
    replication.table(options.out / "thesis_figure_5_3.md", ["", "ours"], rows)


if __name__ == "__main__":
    main()
