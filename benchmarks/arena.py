"""Defaults against defaults on streams: ``python -m benchmarks.arena``.

Each event is predicted, then learnt. Printed, for each stream, the accuracy in percent of ours and
of its peers (River's; with ``--moa`` those of MOA, which is written in Java, see `moa`), then mean
accuracy, mean rank and microseconds of processor time an event, over all streams for the learners
that took all of them and over the streams that all took, and the streams on which a peer is more
than half a point ahead. Linear learners and nearest neighbours get features standardised online,
trees as they are, ours too. The file of ``--json`` keeps accuracy, kappa, G-mean, F1 of the rarest
class, time and memory with the commit and the machine; what is in it is not measured again, and
``--show`` names another of these figures for the table.

Files of ../shared/data are left out if they are not there. ``--streams`` and ``--learners`` select
some by name, ``--hard`` the streams of `hard_streams`. ``--rows N`` is the most events of a stream,
``--seconds N`` the most processor time of a learner on a stream: one that needs more, or is bound
to, is left out there. ``--page`` measures nothing, and prints ``benchmarks/results/arena.md`` from
what is kept.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import subprocess
import sys
import time
from collections import Counter
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
    naive_bayes,
    neighbors,
    preprocessing,
    tree,
)

from benchmarks import hard_streams, moa
from benchmarks.common import Event, events_of, numeric, river_streams
from benchmarks.golden.problems import FOLDER
from streamsvm import AdaptiveSVMClassifier, LaRankClassifier, LASVMClassifier

Events = list[Event]
RESULTS = Path(__file__).parent / "results"


def _file(name: str, n: int, one_class: bool = False) -> Events:
    found = events_of(name, n)
    return [(x, y == found[0][1]) for x, y in found] if one_class else found


def _text(name: str, n: int) -> Events:
    """Return texts in random order as counts of their words."""
    table = pq.read_table(FOLDER / f"{name}.parquet")
    table = table.take(np.random.default_rng(0).permutation(len(table))[:n])
    found: Events = []
    for text, label in zip(table["text"].to_pylist(), table["label"].to_pylist(), strict=True):
        counts: dict[str, float] = dict(Counter(text.lower().split()))
        found.append((counts, label))
    return found


def streams(n: int) -> Iterator[tuple[str, Callable[[], Events]]]:
    """Yield the names of the streams that are at hand, and functions that read n events of them."""
    files: dict[str, Callable[[], Events]] = {
        "elec2": lambda: _file("elec2", n),
        "weather": lambda: _file("weather", n),
        "chessboard": lambda: _file("chessboard", n),
        "chessboard, one colour": lambda: _file("chessboard", n, one_class=True),
        "covtype": lambda: _file("covtype_first20k", n),
        "adult_raw": lambda: _file("adult_raw_train", n),
        "letter": lambda: _file("letter_train", n),
        "sms": lambda: _text("sms_spam", n),
        "sentence polarity": lambda: _text("sentence_polarity", n),
    }
    if FOLDER.exists():
        yield from files.items()
    for name, make in river_streams(n).items():
        yield name, lambda make=make: [(dict(x), y) for x, y in itertools.islice(make(), n)]


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
    "AMF": lambda several: forest.AMFClassifier(seed=1),
    "LeveragingBagging": lambda several: ensemble.LeveragingBaggingClassifier(
        tree.HoeffdingTreeClassifier(), seed=1
    ),
    "KNN": lambda several: _scaled(neighbors.KNNClassifier()),
    "KNN, lazy": lambda several: _scaled(
        neighbors.KNNClassifier(engine=neighbors.LazySearch(window_size=1000))
    ),
    "HT": lambda several: tree.HoeffdingTreeClassifier(),
    "HAT": lambda several: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
    "LR": lambda several: _scaled(linear_model.LogisticRegression(), several),
    "PA": lambda several: _scaled(linear_model.PAClassifier(), several),
    "ALMA": lambda several: _scaled(linear_model.ALMAClassifier(), several),
    "naive Bayes": lambda several: naive_bayes.MultinomialNB(),
    "Gaussian naive Bayes": lambda several: naive_bayes.GaussianNB(),
    "last label": lambda several: LastLabel(),
}
_NUMERIC = {
    *OURS, "KNN", "KNN, lazy", "LR", "PA", "ALMA", "naive Bayes", "Gaussian naive Bayes", "AMF"
}  # fmt: skip
"""Learners that get text as one-hot features."""
_SHOWN = [
    "adaptive", "LASVM or LaRank", "ARF", "SRP", "AMF", "LeveragingBagging", "KNN, lazy", "HAT",
    "LR", "PA", "ALMA", "last label",
]  # fmt: skip
FIGURES = ("accuracy", "kappa", "gmean", "f1", "us", "mb")


def measured(learner: str, events: Events, seconds: float) -> dict[str, float] | None:
    """Return the figures of a new learner by name; None: it takes too long, or too many features.

    FailedError: MOA failed.
    """
    labels = sorted({y for _, y in events}, key=str)
    several = len(labels) > 2
    if not several:
        # River's linear learners take two labels as booleans only.
        events = [(x, y == labels[-1]) for x, y in events]
    if learner in moa.LEARNERS:
        done = moa.predicted(learner, events, seconds)
        if done is None:
            return None
        (found, spent), more = done, {}
    else:
        if learner in _NUMERIC:
            events = [(numeric(x), y) for x, y in events]
        if learner in OURS:
            # Compiles what is not compiled yet.
            _predicted(_LEARNERS[learner](several), events[:1500], np.inf)
        model, start = _LEARNERS[learner](several), time.process_time()
        in_time = _predicted(model, events, seconds)
        if in_time is None:
            return None
        found, spent = in_time, time.process_time() - start
        size = model.memory_usage if learner in OURS else model._raw_memory_usage
        more = {"mb": size / 1e6}
    return figures([y for _, y in events], found) | more | {"us": 1e6 * spent / len(events)}


def _predicted(model: Any, events: Events, seconds: float) -> list[Any] | None:
    """Return what was predicted for each event; None if that takes longer, or is bound to."""
    found, start = [], time.process_time()
    for i, (x, y) in enumerate(events):
        found.append(model.predict_one(x))
        model.learn_one(x, y)
        # Twice as slow as it may be from a tenth of the time on: it will not get there.
        share = min(1.0, 0.1 + 2.0 * i / len(events))
        if time.process_time() - start > share * seconds:
            return None
    return found


def figures(y: list[Any], found: list[Any]) -> dict[str, float]:
    """Return accuracy, kappa, the geometric mean of recalls, and F1 of the rarest class, in %."""
    n, right, of, said = len(y), Counter[Any](), Counter(y), Counter(found)
    for label, one in zip(y, found, strict=True):
        right[label] += label == one
    accuracy = right.total() / n
    chance = sum(of[label] * said[label] for label in of) / n**2
    recalls = [right[label] / of[label] for label in of]
    rarest = min(of, key=lambda label: of[label])
    shares = {
        "accuracy": accuracy,
        "kappa": (accuracy - chance) / (1.0 - chance) if chance < 1.0 else 0.0,
        "gmean": float(np.prod(recalls) ** (1.0 / len(recalls))),
        "f1": 2.0 * right[rarest] / (of[rarest] + said[rarest]),
    }
    return {name: 100.0 * value for name, value in shares.items()}


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


def _losses(found: dict[str, dict[str, Any]], learners: list[str]) -> None:
    """Print the streams on which a peer is more than half a point ahead of the first learner."""
    own, lost = learners[0], []
    for stream, cells in found.items():
        peers = {n: cells[n]["accuracy"] for n in learners if n not in OURS and cells.get(n)}
        if cells.get(own) and peers:
            best = max(peers, key=lambda name: peers[name])
            ahead = peers[best] - cells[own]["accuracy"]
            lost += [(ahead, stream, best)] if ahead > 0.5 else []
    print(f"{own} is more than .5 points behind the best peer on {len(lost)} of {len(found)}:")
    for ahead, stream, best in sorted(lost, reverse=True):
        print(f"- {stream}: {best} is {ahead:.1f} points ahead")


_PAGE = """## Streams, one after the other

Progressive accuracy in percent: each event is predicted, then learnt; defaults against defaults.
River's KNN (of 1,000 examples), LR, PA and ALMA are behind its `StandardScaler`; its forests have
10 trees, MOA's 30. LaRank is of several classes, LASVM of two. An empty cell: too slow (a minute
for 10,000 events, five for 50,000), or not run. On spiral and what follows it one model, one width,
or distances over all features fail. Times are of the processor, mostly of a busy machine.
`python -m benchmarks.arena --rows N`, also with `--hard` and `--moa`; kept in
`benchmarks/results/arena.json`, each with its commit; `--page` prints this page.
"""
_WITH_MOA = ["adaptive", "LASVM or LaRank", *moa.LEARNERS]
_OF_PAGE = (
    ("The first 10,000 events", 10_000, _SHOWN),
    ("The first 50,000 events, or all there are", 50_000, _SHOWN),
    ("MOA, the first 10,000 events", 10_000, _WITH_MOA),
    ("MOA, the first 30,000 events", 30_000, _WITH_MOA),
    ("MOA, the first 50,000 events, or all there are", 50_000, _WITH_MOA),
)
_FEWEST_PEERS = 1


def _print_page(known: dict[str, Any]) -> None:
    """Print the page of results: of each table the streams of which ours and peers are known."""
    print(_PAGE)
    names = [*dict(streams(1)), *dict(hard_streams.streams(1))]
    for title, rows, learners in _OF_PAGE:
        found: dict[str, dict[str, Any]] = {}
        for stream in names:
            cells = known.get(f"{stream} ({rows})", {})
            n_peers = sum(cells.get(name) is not None for name in learners[2:])
            if all(map(cells.get, learners[:2])) and n_peers >= _FEWEST_PEERS:
                found[stream] = {name: cells.get(name) for name in learners}
        if not found:
            continue
        print(f"### {title}\n\n{_row('stream', learners)}\n{'|---' * (1 + len(learners))}|")
        for stream, cells in found.items():
            print(_row(stream, _cells([cell and cell["accuracy"] for cell in cells.values()])))
        _means(found, learners)
        print()
        _times(found)
        print()
        _losses(found, learners)
        print()


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def _about() -> dict[str, Any]:
    """Return the commit and the machine."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return {"commit": commit.stdout.strip(), "machine": platform.machine()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--streams", nargs="*")
    parser.add_argument("--hard", action="store_true")
    parser.add_argument("--learners", nargs="*", choices=list(_LEARNERS))
    parser.add_argument("--moa", action="store_true")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--show", choices=FIGURES, default="accuracy")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.page:
        _print_page(json.loads((RESULTS / "arena.json").read_text()))
        return
    learners = given.learners or list(_SHOWN)
    if given.moa:
        moa.check()
        learners += moa.LEARNERS
    known: dict[str, Any] = {}
    if given.json is not None and given.json.exists():
        known = json.loads(given.json.read_text())
    found: dict[str, dict[str, Any]] = {}
    print(_row("stream", learners))
    print("|---" * (1 + len(learners)) + "|", flush=True)
    for name, read in (hard_streams.streams if given.hard else streams)(given.rows):
        if given.streams and name not in given.streams:
            continue
        before = known.setdefault(f"{name} ({given.rows})", {})
        missing = [learner for learner in learners if learner not in before]
        events = read() if missing else []
        for learner in missing:
            try:
                one = measured(learner, events, given.seconds)
            except moa.FailedError as error:
                # It is not kept: run it again.
                print(error, file=sys.stderr)
                continue
            before[learner] = one and one | _about()
            if given.json is not None:
                given.json.write_text(json.dumps(known, indent=1) + "\n")
        cells = found[name] = {n: before.get(n) for n in learners}
        print(_row(name, _cells([cell and cell.get(given.show) for cell in cells.values()])))
    _means(found, learners)
    _times(found)
    _losses(found, learners)


def _cells(values: list[float | None]) -> list[str]:
    """Return numbers as cells, the largest in bold."""
    shown = ["" if value is None else f"{value:.1f}" for value in values]
    best = max((value for value in values if value is not None), default=None)
    return [f"**{s}**" if v == best and s else s for s, v in zip(shown, values, strict=True)]


if __name__ == "__main__":
    main()
