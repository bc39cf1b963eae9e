"""A class of one in 1,000 and a window: ``python -m benchmarks.rare_classes``.

Recall of the rare class, its examples weighing 100, and specificity (both in percent, from a
quarter of the stream on, each event predicted before it is learnt) with a window of 10,000 examples
and without one. The rare class stays, moves slowly, or jumps once.
"""

from __future__ import annotations

import argparse

import numpy as np

from streamsvm import AdaptiveSVMClassifier, LASVMClassifier

STREAMS = ("stays", "moves", "jumps")
LEARNERS = {"LASVM": LASVMClassifier, "adaptive": AdaptiveSVMClassifier}
_PART = 20


def stream(name: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, float32 (n, 4), and whether each is of the rare class."""
    draws = np.random.default_rng(seed)
    y, x = draws.random(n) < 0.001, draws.normal(size=(n, 4))
    centre, angle = np.full((n, 4), 1.2), np.pi * (0.25 + np.arange(n) / n)
    if name == "moves":
        centre[:, :2] = 1.7 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if name == "jumps":
        centre[n // 2 :, 0] *= -1.0
    x[y] = centre[y] + 0.5 * draws.normal(size=(y.sum(), 4))
    return x.astype(np.float32), y


def recall_and_specificity(
    learner: str, name: str, window: int | None, n: int, seed: int
) -> tuple[float, float]:
    """Return both in percent."""
    x, y = stream(name, n, seed)
    model = LEARNERS[learner](window=window, class_weight={True: 100.0}, seed=1)
    predicted = np.zeros(n, bool)
    for start in range(0, n, _PART):
        part = slice(start, start + _PART)
        predicted[part] = [bool(label) for label in model.predict_many(x[part])]
        model.learn_many(x[part], y[part].tolist())
    late = np.arange(n) >= n // 4
    return 100.0 * predicted[late & y].mean(), 100.0 * (1.0 - predicted[late & ~y].mean())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=6)
    given = parser.parse_args()
    print("| learner | rare class | window 10,000 | none |\n|---|---|---|---|")
    for learner in LEARNERS:
        for name in STREAMS:
            cells = []
            for window in (10_000, None):
                found = [
                    recall_and_specificity(learner, name, window, given.rows, seed)
                    for seed in range(given.seeds)
                ]
                recall, specificity = np.mean(found, axis=0)
                cells.append(f"{recall:.0f} %, {specificity:.1f} %")
            print(f"| {learner} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
