"""Chunking CoNLL-2000 and reading OCR words, as in the thesis' section 5.3.

python -m benchmarks.golden.sequences prints F1, accuracy and seconds beside the published figures;
with --schedules what more or fewer steps give with exact inference.
"""

from __future__ import annotations

import sys
import time
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from benchmarks.golden.problems import FOLDER
from streamsvm import Chain, LaRankSequenceLabeler, SequencePA, SequencePerceptron
from streamsvm.kernels import RBF
from streamsvm.model_files.container import encoded
from streamsvm.structured.chunks import ChunkScore

TEMPLATE = """
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]
U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]
U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]
"""
"""Words and tags in a window of two, and their neighbours: the task's usual features."""


class Published(NamedTuple):
    """A learner, and what the thesis' tables 5.5 and 5.6 say of it."""

    name: str
    model: Any
    f1: float


def chunkers() -> list[Published]:
    """Return the learners of the tables, with their parameters (table 5.4)."""
    larank = LaRankSequenceLabeler
    return [
        Published("LaRank, greedy", larank("greedy", order=2, reprocess=1, C=0.1, seed=1), 93.46),
        Published("LaRank, exact", larank("exact", order=1, reprocess=5, C=0.1, seed=1), 93.34),
        Published("PA, greedy", SequencePA("greedy", order=2, C=0.1, averaged=False), 91.55),
        Published("PA, exact", SequencePA("exact", order=1, C=0.1, averaged=False), 92.21),
        Published("perceptron, greedy", SequencePerceptron("greedy", averaged=False), 88.84),
        Published("perceptron, exact", SequencePerceptron("exact", averaged=False), 89.31),
    ]


def conll(name: str) -> tuple[Any, list[list[str]]]:
    """Return the sentences as a table of two columns, and the chunk labels."""
    table = pq.read_table(FOLDER / f"conll2000_{name}.parquet")
    return table.select(["tokens", "pos"]).rename_columns(["0", "1"]), table["chunks"].to_pylist()


def score_of(model: Any, X: Any, y: list[list[str]]) -> ChunkScore:
    """Return the score of a model on sentences."""
    score = ChunkScore()
    for true, predicted in zip(y, model.predict_many(X), strict=True):
        score.update(true, predicted)
    return score


def ocr(name: str) -> tuple[list[np.ndarray], list[list[str]]]:
    """Return words as arrays of pixels, a row a letter, and their letters."""
    table = pq.read_table(FOLDER / f"ocr_letters_{name}.parquet")
    pixels = np.stack([table[f"p{j}"].to_numpy() for j in range(128)], axis=1).astype(np.float32)
    words, letters = table["word_id"].to_numpy(), np.array(table["label"].to_pylist())
    cuts = np.flatnonzero(np.diff(words)) + 1
    # The constant feature gives each letter a threshold of its own.
    pixels = np.concatenate([pixels, np.ones((len(pixels), 1), np.float32)], axis=1)
    return np.split(pixels, cuts), [part.tolist() for part in np.split(letters, cuts)]


def readers() -> list[tuple[Published, bool]]:
    """Return learners of letters, what the thesis says of their accuracy, and if they finish."""
    larank = LaRankSequenceLabeler
    greedy, exact = larank("greedy", 10, 0.1, 5, seed=1), larank("exact", 1, 0.1, 10, seed=1)
    curved = larank("greedy", 10, 5.0, 15, kernel=RBF(gamma=0.05), seed=1)
    return [
        (Published("OCR, greedy", greedy, 81.15), False),
        (Published("OCR, greedy, finished", greedy.clone(), 83.77), True),
        (Published("OCR, exact", exact, 75.77), False),
        (Published("OCR, exact, finished", exact.clone(), 78.20), True),
        (Published("OCR, greedy, RBF", curved, 83.77), False),
    ]


def ocr_folds(n_folds: int = 10) -> None:
    """Print the mean accuracy over ten folds: a random tenth of the words to learn, nine to test.

    The original's ten folds are those of its file, which the Parquet files do not keep.
    """
    (words, letters), (others, other_letters) = ocr("train"), ocr("test")
    words, letters = words + others, letters + other_letters
    order = np.random.default_rng(0).permutation(len(words))
    for (name, new, published), is_finished in readers():
        found, seconds = [], 0.0
        for fold in range(n_folds):
            parts = order[fold::n_folds], np.delete(order, np.s_[fold::n_folds])
            (X, y), (X_test, y_test) = (
                ([words[i] for i in part], [letters[i] for i in part]) for part in parts
            )
            model = new.clone()
            start = time.process_time()
            model.learn_many(X, y)
            if is_finished:
                model.finish(X, y, max_passes=30)
            seconds += time.process_time() - start
            found.append(100 * score_of(model, X_test, y_test).accuracy)
        print(
            f"{name:22} {np.mean(found):.2f} (published {published}), {min(found):.2f} to "
            f"{max(found):.2f}, {seconds / n_folds:.2f} s a fold",
            flush=True,
        )


def schedules() -> None:
    """Print the dual after one pass by the numbers of PROCESSOLD and OPTIMIZE steps."""
    chain = Chain(TEMPLATE)
    (X, y), (X_test, y_test) = conll("train"), conll("test")
    features, features_test = chain.transform_many(X), chain.transform_many(X_test)
    for reprocess, optimize in ((5, 10), (10, 10), (20, 10), (20, 2)):
        model = LaRankSequenceLabeler("exact", 1, 0.1, reprocess, optimize, seed=1)
        start = time.process_time()
        model.learn_many(features, y)
        seconds, score = time.process_time() - start, score_of(model, features_test, y_test)
        print(
            f"n_R {reprocess}, {optimize} OPTIMIZE: {seconds:.1f} s, dual {model.dual:.1f}, "
            f"F1 {100 * score.f1:.2f}",
            flush=True,
        )
    gap = model.finish(features, y, gap=30.0, max_passes=30)
    score = score_of(model, features_test, y_test)
    print(f"finished, gap {gap:.1f}: dual {model.dual:.1f}, F1 {100 * score.f1:.2f}")


def main() -> None:
    """Print the tables."""
    if "--schedules" in sys.argv:
        schedules()
        return
    chain = Chain(TEMPLATE)
    (X, y), (X_test, y_test) = conll("train"), conll("test")
    for name, model, published in chunkers():
        start = time.process_time()
        model.learn_many(chain.transform_many(X), y)
        seconds = time.process_time() - start
        start = time.process_time()
        score = score_of(model, chain.transform_many(X_test), y_test)
        rate = score.n_tokens / (time.process_time() - start)
        print(
            f"{name:20} {seconds:6.2f} s, F1 {100 * score.f1:.2f} (published {published}), "
            f"accuracy {100 * score.accuracy:.2f}, {rate:,.0f} tokens a second with scoring",
            flush=True,
        )
        if isinstance(model, LaRankSequenceLabeler):
            dual, gap = model.dual, model.kept_gap().total
            size = len(encoded(model)) / 1e6
            print(
                f"{'':20} dual {dual:.1f}, gap over {model.n_support_patterns} kept {gap:.1f}; "
                f"file {size:.1f} MB"
            )
    ocr_folds()


if __name__ == "__main__":
    main()
