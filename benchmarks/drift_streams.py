"""Learners on streams with drift and without: ``python -m benchmarks.drift_streams``.

Each event is predicted, then learnt. Printed: progressive accuracy in percent of each learner on
each stream; then means over all streams of those learners that took all, and over those streams
that all learners took: accuracy, rank, and microseconds of processor time an event; last, how long
ours takes compared with one model and with a forest. Files of ../shared/data are left out if they
are not there. Linear learners and nearest neighbours get features standardised online, trees as
they are, ours too.

``--hard`` takes the streams of `hard_streams` instead, and other learners beside ours.
``--streams`` and ``--learners`` select some by name. ``--capymoa`` adds MOA's adaptive random
forest, streaming random patches and SAM-kNN (`capymoa_peers`; CapyMOA and Java must be there), but
for text.
``--rows N`` is the most events of a stream, 10,000 (generators have 5,000). ``--seconds N`` is the
most processor time of a learner on a stream, 300: one that needs more, or is bound to, is left out
there. ``--json FILE`` keeps what was measured, and what is in it already is not measured again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from river import (
    base,
    ensemble,
    forest,
    linear_model,
    multiclass,
    neighbors,
    preprocessing,
    tree,
)

from benchmarks import capymoa_peers, hard_streams
from benchmarks.common import events_of, numeric, river_streams
from streamsvm import AdaptiveSVMClassifier, LaRankClassifier, LASVMClassifier
from tests.golden.problems import FOLDER

Events = list[tuple[dict[Any, Any], Any]]
GENERATED = 5000


def _file(name: str, n: int, one_class: bool = False) -> Events:
    found = events_of(name, n)
    return [(x, y == found[0][1]) for x, y in found] if one_class else found


def _text(name: str, n: int) -> Events:
    """Return texts in random order as counts of their words."""
    table = pq.read_table(FOLDER / f"{name}.parquet")
    table = table.take(np.random.default_rng(0).permutation(len(table))[: min(n, GENERATED)])
    found: Events = []
    for text, label in zip(table["text"].to_pylist(), table["label"].to_pylist(), strict=True):
        counts: dict[str, float] = {}
        for word in text.lower().split():
            counts[word] = counts.get(word, 0.0) + 1.0
        found.append((counts, label))
    return found


def streams(n: int) -> Iterator[tuple[str, Callable[[], Events]]]:
    """Yield the names of the streams that are at hand, and functions that read them."""
    few = min(n, GENERATED)
    files: dict[str, Callable[[], Events]] = {
        "elec2": lambda: _file("elec2", n),
        "weather": lambda: _file("weather", n),
        "chessboard": lambda: _file("chessboard", n),
        "chessboard, one colour": lambda: _file("chessboard", n, one_class=True),
        "covtype": lambda: _file("covtype_first20k", n),
        "adult_raw": lambda: _file("adult_raw_train", few),
        "letter": lambda: _file("letter_train", few),
        "sms": lambda: _text("sms_spam", n),
        "sentence polarity": lambda: _text("sentence_polarity", n),
    }
    if FOLDER.exists():
        yield from files.items()
    for name, make in river_streams(few).items():
        yield name, lambda make=make: [(dict(x), y) for x, y in itertools.islice(make(), few)]


class LastLabel(base.Classifier):
    """Predicts the label of the event before."""

    def __init__(self) -> None:
        self._label: Any = None

    def predict_one(self, x: Any, **kwargs: Any) -> Any:
        """Return the last label."""
        return self._label

    def learn_one(self, x: Any, y: Any) -> None:
        """Note the label."""
        self._label = y


def _scaled(learner: Any, several: bool = False) -> Any:
    if several:
        learner = multiclass.OneVsRestClassifier(learner)
    return preprocessing.StandardScaler() | learner


OURS = ("adaptive", "LASVM or LaRank", "LASVM", "LaRank", "LASVM, 500")
_LEARNERS: dict[str, Callable[[bool], Any]] = {
    "adaptive": lambda several: AdaptiveSVMClassifier(seed=1),
    "LASVM or LaRank": lambda several: (LaRankClassifier if several else LASVMClassifier)(seed=1),
    "LASVM": lambda several: LASVMClassifier(seed=1),
    "LaRank": lambda several: LaRankClassifier(seed=1),
    "LASVM, 500": lambda several: LASVMClassifier(max_support_vectors=500, seed=1),
    "ARF": lambda several: forest.ARFClassifier(seed=1),
    "SRP": lambda several: ensemble.SRPClassifier(seed=1),
    "KNN": lambda several: _scaled(neighbors.KNNClassifier()),
    "KNN, lazy": lambda several: _scaled(
        neighbors.KNNClassifier(engine=neighbors.LazySearch(window_size=1000))
    ),
    "HT": lambda several: tree.HoeffdingTreeClassifier(),
    "HAT": lambda several: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
    "LR": lambda several: _scaled(linear_model.LogisticRegression(), several),
    "PA": lambda several: _scaled(linear_model.PAClassifier(), several),
    "last label": lambda several: LastLabel(),
}
_NUMERIC = {*OURS, "KNN", "KNN, lazy", "LR", "PA", *capymoa_peers.COMPARES_ROWS}
"""Learners that get text as one-hot features."""
_SHOWN = ["adaptive", "LASVM or LaRank", "ARF", "SRP", "KNN", "HAT", "LR", "PA", "last label"]
_SHOWN_ON_HARD = [*OURS[:1], *OURS[2:], "KNN, lazy", "HT", "ARF", "last label"]


def measured(learner: str, events: Events, seconds: float) -> dict[str, float] | None:
    """Return accuracy and microseconds an event of a new learner; None if it takes too long."""
    labels = sorted({y for _, y in events}, key=str)
    several = len(labels) > 2
    if not several:
        # River's linear learners take two labels as booleans only.
        events = [(x, y == labels[-1]) for x, y in events]
    if learner in _NUMERIC:
        events = [(numeric(x), y) for x, y in events]
    if learner in OURS:
        # Compiles what is not compiled yet.
        _right(_LEARNERS[learner](several), events[:1500], np.inf)
    start = time.process_time()
    if learner in capymoa_peers.NAMES:
        if len({key for x, _ in events for key in x}) > capymoa_peers.MOST_FEATURES:
            return None
        model = capymoa_peers.MOAClassifier(learner, events)
    else:
        model = _LEARNERS[learner](several)
    right = _right(model, events, seconds)
    if right is None:
        return None
    spent = time.process_time() - start
    return {"accuracy": 100.0 * right / len(events), "us": 1e6 * spent / len(events)}


def _right(model: Any, events: Events, seconds: float) -> int | None:
    """Return how many events were predicted right; None if that takes longer, or is bound to."""
    right, start = 0, time.process_time()
    for i, (x, y) in enumerate(events):
        right += model.predict_one(x) == y
        model.learn_one(x, y)
        # Twice as slow as it may be from a tenth of the time on: it will not get there.
        share = min(1.0, 0.1 + 2.0 * i / len(events))
        if time.process_time() - start > share * seconds:
            return None
    return right


def _means(found: dict[str, dict[str, Any]], learners: list[str]) -> None:
    """Print means over all streams, and over those streams that all learners took."""
    quick = [name for name in learners if all(cells[name] for cells in found.values())]
    whole = {stream: cells for stream, cells in found.items() if all(cells[n] for n in learners)}
    _mean_rows(found, learners, quick)
    if whole and len(quick) < len(learners):
        _mean_rows(whole, learners, learners)


def _mean_rows(found: dict[str, dict[str, Any]], columns: list[str], learners: list[str]) -> None:
    """Print the means over streams of learners that took them all; other columns stay empty."""
    if not learners:
        return
    accuracy, us = (
        np.array([[cells[name][key] for name in learners] for cells in found.values()])
        for key in ("accuracy", "us")
    )
    # Learners that are equally good have the same rank, the mean of their places.
    above = (accuracy[:, None, :] > accuracy[:, :, None]).sum(axis=2)
    same = (accuracy[:, None, :] == accuracy[:, :, None]).sum(axis=2)
    ranks = above + (same + 1) / 2
    for name, values, digits in (
        (f"mean of {len(found)}", accuracy, 1),
        (f"mean rank among these {len(learners)}", ranks, 2),
        ("us an event, mean", us, 0),
    ):
        of = dict(zip(learners, values.mean(axis=0), strict=True))
        print(_row(name, [f"{of[c]:.{digits}f}" if c in of else "" for c in columns]))


def _times(found: dict[str, dict[str, Any]]) -> None:
    """Print how our several models compare in time with one of them, and with a forest."""
    own = OURS[0]
    for other in (OURS[1], "ARF"):
        both = {
            stream: (cells[own]["us"], cells[other]["us"])
            for stream, cells in found.items()
            if cells.get(own) and cells.get(other)
        }
        if both:
            times = np.array(list(both.values()))
            ratios = times[:, 0] / times[:, 1]
            print(
                f"{own} takes {times[:, 0].sum() / times[:, 1].sum():.2f} times as long as {other} "
                f"in the mean, at most {ratios.max():.2f} times ({list(both)[ratios.argmax()]})"
            )


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--streams", nargs="*")
    parser.add_argument("--hard", action="store_true")
    parser.add_argument("--learners", nargs="*", choices=list(_LEARNERS))
    parser.add_argument("--capymoa", action="store_true")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    read_streams, shown = (
        (hard_streams.streams, _SHOWN_ON_HARD) if given.hard else (streams, _SHOWN)
    )
    given.learners = given.learners or list(shown)
    if given.capymoa:
        capymoa_peers.check()
        given.learners += capymoa_peers.NAMES
    known: dict[str, Any] = {}
    if given.json is not None and given.json.exists():
        known = json.loads(given.json.read_text())
    found: dict[str, dict[str, Any]] = {}
    print(_row("stream", given.learners))
    print("|---" * (1 + len(given.learners)) + "|", flush=True)
    for name, read in read_streams(given.rows):
        if given.streams and name not in given.streams:
            continue
        before = known.setdefault(name, {})
        missing = [learner for learner in given.learners if learner not in before]
        events = read() if missing else []
        for learner in missing:
            before[learner] = measured(learner, events, given.seconds)
            if given.json is not None:
                given.json.write_text(json.dumps(known, indent=1) + "\n")
        found[name] = before
        cells = [f"{c['accuracy']:.1f}" if (c := before[n]) else "" for n in given.learners]
        best = max(cells, key=lambda cell: float(cell or 0.0))
        cells = [f"**{cell}**" if cell == best else cell for cell in cells]
        print(_row(name, cells), flush=True)
    _means(found, given.learners)
    _times(found)


if __name__ == "__main__":
    main()
