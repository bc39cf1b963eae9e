"""One pass over CoNLL-2000's chunking task, beside Vowpal Wabbit's learning to search, in turns.

python -m benchmarks.sequences; it needs `pip install vowpalwabbit`, and the data.

Seconds are of the processor. Ours include the features, made from words and tags; Vowpal Wabbit's
include reading the same features from a text file. Both have compiled, or loaded, before.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.golden.sequences import TEMPLATE, conll
from streamsvm import Chain, LaRankSequenceLabeler, SequencePA
from streamsvm.structured.chunks import ChunkScore

_ROUNDS = 3
_SEARCH = "--search_task sequence --search_history_length 1 --search_rollout none -b 22 --quiet"


def write_text(path: Path, X: Any, y: list[list[str]], numbers: dict[str, int]) -> None:
    """Write sentences in Vowpal Wabbit's format: a token a line, its label and its features."""
    features = Chain(TEMPLATE).transform_many(X)
    lines = []
    for i, labels in enumerate(y):
        for t, label in enumerate(labels, int(features.first[i])):
            keys = features.keys[features.start[t] : features.start[t + 1]]
            number = numbers.setdefault(label, len(numbers) + 1)
            lines.append(f"{number} | " + " ".join(map(str, keys.tolist())))
        lines.append("")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def wabbit_seconds(folder: Path, n_labels: int) -> float:
    """Return the seconds of one pass; the predictions for the test file are written."""
    from vowpalwabbit import Workspace

    start = time.process_time()
    search = f"--search {n_labels} {_SEARCH}"
    Workspace(f"{search} -d {folder}/train -f {folder}/model").finish()
    seconds = time.process_time() - start
    Workspace(f"-t -i {folder}/model -d {folder}/test -p {folder}/found --quiet").finish()
    return seconds


def wabbit_score(folder: Path, y: list[list[str]], names: list[str]) -> ChunkScore:
    """Return the score of the predictions that Vowpal Wabbit wrote."""
    score = ChunkScore()
    rows = (folder / "found").read_text().split("\n")
    sentences = [row.split() for row in rows if row.strip()]
    for true, found in zip([labels for labels in y if labels], sentences, strict=True):
        score.update(true, [names[int(number) - 1] for number in found])
    return score


def our_seconds(model: Any, X: Any, y: list[list[str]]) -> float:
    """Return the seconds of features and one pass."""
    start = time.process_time()
    model.learn_many(Chain(TEMPLATE).transform_many(X), y)
    return time.process_time() - start


def main() -> None:
    """Print the medians."""
    (X, y), (X_test, y_test) = conll("train"), conll("test")
    ours = {
        "LaRank, greedy": LaRankSequenceLabeler(seed=1),
        "LaRank, greedy, no REPROCESS": LaRankSequenceLabeler(reprocess=0, seed=1),
        "LaRank, exact": LaRankSequenceLabeler("exact", seed=1),
        "averaged PA, greedy": SequencePA(),
    }
    for model in ours.values():
        our_seconds(model.clone(), X.slice(0, 50), y[:50])
    seconds: dict[str, list[float]] = {}
    scores: dict[str, ChunkScore] = {}
    with tempfile.TemporaryDirectory() as name:
        folder, numbers = Path(name), dict[str, int]()
        write_text(folder / "train", X, y, numbers)
        write_text(folder / "test", X_test, y_test, numbers)
        for _ in range(_ROUNDS):
            seconds.setdefault("Vowpal Wabbit", []).append(wabbit_seconds(folder, len(numbers)))
            scores["Vowpal Wabbit"] = wabbit_score(folder, y_test, list(numbers))
            for key, new in ours.items():
                model = new.clone()
                seconds.setdefault(key, []).append(our_seconds(model, X, y))
                scores[key] = ChunkScore()
                predicted = model.predict_many(Chain(TEMPLATE).transform_many(X_test))
                for true, found in zip(y_test, predicted, strict=True):
                    scores[key].update(true, found)
    for key, taken in seconds.items():
        print(f"{key:30} {np.median(taken):6.2f} s, F1 {100 * scores[key].f1:.2f}")


if __name__ == "__main__":
    main()
