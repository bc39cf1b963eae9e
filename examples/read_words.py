"""You learn how to read handwritten words, letter by letter, each after the letters before it.

`python examples/read_words.py TRAIN.parquet TEST.parquet` reads the OCR letters: columns `word_id`,
`label` and the pixels `p0` to `p127`, a letter a row. Without files, a few words are made up.
"""

import sys

import numpy as np
import pyarrow.parquet as pq

from streamsvm import LaRankSequenceLabeler, kernels

MODELS = {
    "each letter alone": LaRankSequenceLabeler(order=0, C=0.1, reprocess=5, seed=1),
    "after ten letters": LaRankSequenceLabeler(order=10, C=0.1, reprocess=5, seed=1),
    "the best word": LaRankSequenceLabeler("exact", C=0.1, reprocess=10, seed=1),
    "after ten letters, RBF kernel": LaRankSequenceLabeler(
        order=10, C=5.0, reprocess=15, kernel=kernels.RBF(gamma=0.05), seed=1
    ),
}


def read(path):
    """Return words as arrays of pixels, a row a letter, and their letters."""
    table = pq.read_table(path)
    # The constant gives each letter a threshold of its own.
    columns = [table[f"p{i}"].to_numpy() for i in range(128)] + [np.ones(len(table))]
    pixels = np.column_stack(columns).astype(np.float32)
    cuts = np.flatnonzero(np.diff(table["word_id"].to_numpy())) + 1
    letters = np.split(np.array(table["label"].to_pylist()), cuts)
    return np.split(pixels, cuts), [part.tolist() for part in letters]


def made_up(n, seed):
    """Return words whose letters are noisy pictures, the same of "n" and "u"."""
    random, words, letters = np.random.default_rng(seed), [], []
    pictures = dict(zip("nil", np.random.default_rng(0).integers(0, 2, (3, 128)), strict=True))
    pictures |= {"u": pictures["n"], "a": 1 - pictures["n"]}
    for _ in range(n):
        word = str(random.choice(["nil", "lain", "null", "inn", "unal"]))
        noise = random.random((len(word), 128)) < 0.2
        words.append((np.array([pictures[c] for c in word]) ^ noise).astype(np.float32))
        letters.append(list(word))
    return words, letters


def main():
    if len(sys.argv) > 2:
        train, test = read(sys.argv[1]), read(sys.argv[2])
    else:
        train, test = made_up(100, seed=1), made_up(50, seed=2)
    for name, model in MODELS.items():
        model.learn_many(*train)
        predicted, letters = model.predict_many(test[0]), test[1]
        pairs = [zip(p, y, strict=True) for p, y in zip(predicted, letters, strict=True)]
        right = [a == b for pair in pairs for a, b in pair]
        print(f"{name:30} {np.mean(right):.1%} of the letters")


if __name__ == "__main__":
    main()
