"""Answers only where few are wrong, on streams that drift: ``benchmarks.trust selective``.

Each event is predicted, then learnt, by `AdaptiveSVMClassifier` (texts: `SVMSGDClassifier`), and by
River's Hoeffding tree and naive Bayes; by their probabilities each is answered or not, with errors
of .01, .02, .05 and .1 allowed, by

* `Selective`, also with a tenth of the events looked at, as the labels of answers do not come;
* a fixed threshold: the probability of the most likely label is at least 1 - error;
* a threshold chosen by the first 2,000 events: the lowest at which at most this share was wrong.

Streams are those of `trust_streams`. Printed: how many streams had any answers; on how many of them
more were wrong than allowed, and by how many points at most; the share answered in the mean. First
the microseconds of processor time that `Selective` adds to an event. ``--rows N`` is the most
events of a stream, 10,000; ``--stream NAME`` prints all figures of one.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks import arena
from benchmarks.trust_streams import Predicted, as_numbers, predictions, print_costs, streams
from streamsvm import Selective
from streamsvm.selection.answering import Answering

ERRORS = (0.01, 0.02, 0.05, 0.1)
CHOSEN_BY = 2000

Answers = tuple[int, int]
"""How many events were answered, and how many of the answers were wrong."""


def ours(error: float, audit: float = 0.0) -> Callable[[Predicted], Answers]:
    """Return what answers as `Selective` does."""

    def answer(stream: Predicted) -> Answers:
        answering, n, wrong = Answering(error, audit=audit, seed=1), 0, 0
        for p, y in stream:
            found = answering.next(p)
            answering.learn(y, found)
            if found.label is not None:
                n, wrong = n + 1, wrong + (found.label != y)
        return n, wrong

    return answer


def _tops(stream: Predicted) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of the most likely label of each event, and whether it was wrong."""
    most = [max(p, key=p.__getitem__) if p else None for p, _ in stream]
    known = zip(stream, most, strict=True)
    top = np.array([p[y] if p else 0.0 for (p, _), y in known])
    wrong = np.array([y != top for (_, y), top in zip(stream, most, strict=True)])
    return np.nan_to_num(top), wrong


def believed(error: float) -> Callable[[Predicted], Answers]:
    """Return what believes the probabilities."""

    def answer(stream: Predicted) -> Answers:
        top, wrong = _tops(stream)
        is_given = top >= 1.0 - error
        return int(is_given.sum()), int((wrong & is_given).sum())

    return answer


def chosen(error: float) -> Callable[[Predicted], Answers]:
    """Return what answers above a threshold that was good enough on the first events."""

    def answer(stream: Predicted) -> Answers:
        top, wrong = _tops(stream)
        first, rest = slice(CHOSEN_BY), slice(CHOSEN_BY, None)
        order = np.argsort(-top[first], kind="stable")
        shares = np.cumsum(wrong[first][order]) / np.arange(1, len(order) + 1)
        good = np.flatnonzero(shares <= error)
        if not len(good):
            return 0, 0
        is_given = top[rest] >= top[first][order][good[-1]]
        return int(is_given.sum()), int((wrong[rest] & is_given).sum())

    return answer


WAYS: dict[str, Callable[[float], Callable[[Predicted], Answers]]] = {
    "Selective": ours,
    "Selective, audit .1": lambda error: ours(error, 0.1),
    "probability of 1 - error": believed,
    f"chosen on {CHOSEN_BY:,}": chosen,
}


def measured(name: str, events: arena.Events) -> Iterator[tuple[str, float, str, int, int, int]]:
    """Yield model, error, way, the events, the answers and the wrong ones of a stream."""
    found = predictions(name, *as_numbers(events), has_bayes=True)
    for (model, stream), error, (way, make) in itertools.product(
        found.items(), ERRORS, WAYS.items()
    ):
        yield model, error, way, len(stream), *make(error)(stream)


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--stream", help="all figures of this stream only")
    given = parser.parse_args(arguments)
    print_costs(Selective, "predict_one")
    found: dict[tuple[float, str], list[tuple[int, int, int]]] = {}
    for name, read in streams(given.rows):
        if given.stream not in (None, name):
            continue
        for model, error, way, n, answers, wrong in measured(name, read()):
            found.setdefault((error, way), []).append((n, answers, wrong))
            if given.stream is not None or (wrong > error * answers and way == "Selective"):
                print(f"{name}, {model}, {error}, {way}: {wrong} of {answers} answers wrong")
    print("| error | way | streams with answers | more wrong | by points at most | answered |")
    print("|---|---|---|---|---|---|")
    for (error, way), rows in sorted(found.items(), key=lambda one: one[0][0]):
        above = [100.0 * (wrong / n - error) for _, n, wrong in rows if n]
        answered = float(np.mean([answers / n for n, answers, _ in rows]))
        too_many = sum(one > 0.0 for one in above)
        most = max([0.0, *above])
        cells = f"{len(above)} of {len(rows)} | {too_many} | {most:.2f} | {answered:.1%}"
        print(f"| {error} | {way} | {cells} |")
