"""Sets for the tokens of sentences: ``python -m benchmarks.trust tokens``.

CoNLL-2000's chunking task and OCR words, also with the tags, or half of the pixels, lost from the
middle on. Each sentence is predicted, then learnt, by `LaRankSequenceLabeler`, greedy and exact.
The scores of labels are made into sets by `ConformalSets`, also by class and never empty, and by
margins that stay: the quantile of the first 1,000 tokens, a margin of 1, and none, which is the
label that is predicted. Printed, in percent: the share of tokens whose set misses the label, the
most that it is off at any moment after 2,000 tokens, and in the worst window of 1,000; the mean
size of sets, and how many are empty. It needs the data; ``--rows N`` takes the first N sentences.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.golden.sequences import TEMPLATE, conll, ocr
from benchmarks.trust_sets import CALIBRATION, Sets, figures
from streamsvm import Chain, LaRankSequenceLabeler
from streamsvm.labels.token_sets import Margins, TokenSets

Predicted = list[tuple[Margins, list[Any]]]
COVERAGES = (0.9, 0.95)


def streams(n: int) -> Iterator[tuple[str, list[Any], list[list[Any]]]]:
    """Yield the names of streams, their sentences and labels."""
    table, chunks = conll("train")
    columns = (table[name].to_pylist()[:n] for name in ("0", "1"))
    pairs = zip(*columns, strict=True)
    chunked = [list(map(list, zip(words, tags, strict=True))) for words, tags in pairs]
    half = len(chunked) // 2
    lost = [[[word, "?"] for word, _ in sentence] for sentence in chunked[half:]]
    parts = [ocr(name) for name in ("train", "test")]
    words, letters = ([*a, *b][:n] for a, b in zip(*parts, strict=True))
    middle = len(words) // 2
    blank = [word * (np.arange(word.shape[1]) >= 64) for word in words[middle:]]
    chain = Chain(TEMPLATE)
    yield "CoNLL-2000", list(map(chain.transform_one, chunked)), chunks[:n]
    changed = chunked[:half] + lost
    yield "CoNLL-2000, tags lost", list(map(chain.transform_one, changed)), chunks[:n]
    yield "OCR words", words, letters
    yield "OCR words, half lost", words[:middle] + blank, letters


def predicted(model: Any, sentences: list[Any], labels: list[list[Any]]) -> Predicted:
    """Return the margins of each sentence before it was learnt, and its labels."""
    found = []
    for x, y in zip(sentences, labels, strict=True):
        found.append((Margins.of(model.decision_function_one(x)), y))
        model.learn_one(x, y)
    return found


def ours(coverage: float, **parameters: Any) -> Callable[[Predicted], Sets]:
    """Return what makes sets as `ConformalSets` does."""

    def make(stream: Predicted) -> Sets:
        sets, missed, sizes = TokenSets(coverage, **parameters), [], []
        for margins, y in stream:
            found = sets.of(margins)
            sets.learn(y, margins, found)
            missed += [label not in one for label, one in zip(y, found, strict=True)]
            sizes += map(len, found)
        return np.array(missed), np.array(sizes)

    return make


def within(margin: float) -> Callable[[Predicted], Sets]:
    """Return what takes all labels at most so far behind the best other one."""

    def make(stream: Predicted) -> Sets:
        sizes = [(margins.values <= margin).sum(axis=1) for margins, _ in stream]
        return true_margins(stream) > margin, np.concatenate(sizes)

    return make


def true_margins(stream: Predicted) -> np.ndarray:
    """Return the margin of the true label of each token; infinite where it was not known."""
    found = []
    for margins, y in stream:
        codes = {label: c for c, label in enumerate(margins.labels)}
        for label, row in zip(y, margins.values, strict=True):
            found.append(row[codes[label]] if label in codes else math.inf)
    return np.array(found)


def split(coverage: float) -> Callable[[Predicted], Sets]:
    """Return what keeps the margin that fits the first tokens."""

    def make(stream: Predicted) -> Sets:
        first = np.sort(true_margins(stream)[:CALIBRATION])
        return within(float(first[math.ceil((len(first) + 1) * coverage) - 1]))(stream)

    return make


def ways() -> Iterator[tuple[str, float, Callable[[Predicted], Sets]]]:
    """Yield all ways to make sets, and the coverage that they are compared with."""
    for c in COVERAGES:
        yield "ConformalSets", c, ours(c)
        yield "ConformalSets, by class", c, ours(c, by_class=True)
        yield "ConformalSets, never empty", c, ours(c, may_be_empty=False)
        yield "margin of the first 1,000", c, split(c)
    yield "margin 1", 0.95, within(1.0)
    yield "the predicted label", 0.95, within(-1e-300)


def costs(model: Any, sentences: list[Any], stream: Predicted) -> str:
    """Return the microseconds of processor time a token takes for scores, and for sets."""
    n = sum(len(y) for _, y in stream)
    start = time.process_time()
    for x in sentences:
        model.decision_function_one(x)
    middle = time.process_time()
    ours(0.9)(stream)
    end = time.process_time()
    scores, sets = 1e6 * (middle - start) / n, 1e6 * (end - middle) / n
    return f"{scores:.2f} us a token for scores, {sets:.2f} for sets"


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    n = parser.parse_args(arguments).rows
    print("| stream | | coverage | way | missed | off after 2,000 | worst window | size | empty |")
    for name, sentences, labels in streams(n):
        for inference in ("greedy", "exact"):
            model = LaRankSequenceLabeler(inference, seed=1)
            if name.startswith("OCR"):  # as in the thesis
                order, reprocess = (10, 5) if inference == "greedy" else (1, 10)
                model = LaRankSequenceLabeler(inference, order, 0.1, reprocess, seed=1)
            stream = predicted(model, sentences, labels)
            for way, coverage, make in ways():
                of = figures(make(stream), coverage)
                cells = [f"{of[key]:.2f}" for key in ("miss", "after", "window", "size", "empty")]
                print(f"| {name} | {inference} | {coverage} | {way} | {' | '.join(cells)} |",
                      flush=True)  # fmt: skip
            print(f"{name}, {inference}: {costs(model, sentences[-500:], stream[-500:])}")
