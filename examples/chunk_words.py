"""You learn how to find chunks of words, such as noun phrases, by a model that learns as it reads.

`python examples/chunk_words.py TRAIN.parquet TEST.parquet` reads CoNLL-2000's chunking task: the
columns `tokens`, `pos` and `chunks`, a sentence a row. Without files, sentences are made up.
"""

import random
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq

from streamsvm import Chain, LaRankSequenceLabeler
from streamsvm.structured.chunks import ChunkScore

WORDS = {
    "DT": "the a some".split(),
    "JJ": "old small red".split(),
    "NN": "dog cat house park".split(),
    "VB": "sees likes passes".split(),
    "IN": "in near with".split(),
}
# Words of each kind, and whether they begin a chunk, go on with one, or are outside.
PHRASES = [
    (["DT", "NN"], ["B-NP", "I-NP"]),
    (["DT", "JJ", "NN"], ["B-NP", "I-NP", "I-NP"]),
    (["VB"], ["B-VP"]),
    (["IN"], ["B-PP"]),
]


def made_up(n, seed):
    """Return sentences of random phrases as a table."""
    draw, rows = random.Random(seed), []
    for _ in range(n):
        phrases = [draw.choice(PHRASES) for _ in range(draw.randrange(2, 6))]
        tags = [tag for kinds, _ in phrases for tag in kinds]
        chunks = [label for _, labels in phrases for label in labels]
        rows.append(
            {"tokens": [draw.choice(WORDS[t]) for t in tags], "pos": tags, "chunks": chunks}
        )
    return pa.Table.from_pylist(rows)


def main():
    if len(sys.argv) > 2:
        train, test = (pq.read_table(path) for path in sys.argv[1:3])
    else:
        train, test = made_up(200, seed=0), made_up(100, seed=1)
    # Words and tags two places to the left and right, and pairs of neighbours, are the features.
    model = Chain(window=2) | LaRankSequenceLabeler(C=0.1, seed=1)
    start = time.perf_counter()
    for rows in train.to_batches(max_chunksize=1000):
        model.learn_many(rows.select(["tokens", "pos"]), rows["chunks"])
    print(f"{train.num_rows:,} sentences learnt in {time.perf_counter() - start:.1f} s")
    score = ChunkScore()
    predicted = model.predict_many(test.select(["tokens", "pos"]))
    for labels, found in zip(test["chunks"].to_pylist(), predicted, strict=True):
        score.update(labels, found)
    print(f"{score.f1:.2%} F1 of the chunks, {score.accuracy:.2%} of the tokens")


if __name__ == "__main__":
    main()
