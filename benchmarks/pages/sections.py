"""The sections that `benchmarks.pages` measures, and the blocks of the pages that they fill."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from benchmarks import classes, drift, which_learner
from benchmarks.peers import tables
from benchmarks.peers.measure import measure
from benchmarks.peers.scenarios import BY_ID, SCENARIOS

Found = dict[str, Any]


class Section(NamedTuple):
    """What is measured, and where it is shown."""

    items: dict[str, Callable[[bool], Any]]  # each takes whether it is only a quick trial
    blocks: dict[tuple[str, str], Callable[[Found], Iterable[str]]]  # by page and mark
    is_timed: bool
    minutes: int  # about, on an idle machine of two cores


def _peers(name: str, quick: bool) -> Any:
    timeout = 60.0 if quick else 7200.0
    return measure(BY_ID[name], 1 if quick else 3, slow=not quick, timeout=timeout)


def _to_the_optimum(name: str, quick: bool) -> Any:
    scenario = BY_ID[name]
    wanted = set(tables.TO_THE_OPTIMUM)
    systems = {name: system for name, system in scenario.systems.items() if name in wanted}
    return measure(
        scenario._replace(systems=systems, slow=(), elsewhere={}), 1 if quick else 3, True, 7200.0
    )


def _short(seconds: float) -> str:
    """Return seconds with one digit behind the point, or two of less than a second."""
    text = f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.1f}"
    return text.removeprefix("0")


def _rows(found: Found, items: Iterable[str], heads: list[str], cells: Any) -> Iterable[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for item in items:
        yield f"| {item} | {' | '.join(cells(item, found[item]))} |"


def _compared(pairs: list[tuple[float, float]]) -> list[str]:
    """Return errors and seconds as cells; the least error is bold."""
    least = min(round(error, 1) for error, _ in pairs)
    marks = ["**" if round(error, 1) == least else "" for error, _ in pairs]
    if all(marks):
        marks = [""] * len(pairs)
    return [
        f"{mark}{error:.1f} %{mark}, {_short(seconds)} s"
        for mark, (error, seconds) in zip(marks, pairs, strict=True)
    ]


def _overlap(found: Found) -> Iterable[str]:
    return _rows(
        found,
        classes.OVERLAPPING,
        ["stream", "LASVM", "LaRank"],
        lambda _, one: _compared([one["LASVMClassifier"], one["LaRankClassifier"]]),
    )


def _streams(found: Found) -> Iterable[str]:
    heads = ["data", "LASVM, C 1", "LaRank, C 1", "LASVM, C 10", "LaRank, C 10"]

    def cells(_: str, one: Any) -> list[str]:
        both = ("LASVMClassifier", "LaRankClassifier")
        return [c for C in (1, 10) for c in _compared([one[f"{name}, {C}"] for name in both])]

    return _rows(found, classes.STREAMS, heads, cells)


def _separate(found: Found) -> Iterable[str]:
    names = ("LASVM", "separate LASVMs", "LaRank", "SVC")

    def cells(_: str, one: Any) -> list[str]:
        return [
            f"{one[name]['error']:.2f} %, {_short(one[name]['seconds'])} s"
            + (f"; {one[name]['finished']:.2f} %" if "finished" in one[name] else "")
            for name in names
        ]

    return _rows(found, classes.NAMES, ["data", *names[:3], "scikit-learn SVC"], cells)


def _bounds(found: Found) -> Iterable[str]:
    heads = ["stream", "no limit", "`max_support_vectors` 100", "300", "1000"]
    heads += ["`window` 100", "300", "1000"]

    def cells(_: str, one: Any) -> list[str]:
        return [f"{a:.1f} / {b:.1f}" for a, b in one]

    yield from _rows(found, classes.BOUNDED, heads, cells)
    columns = zip(*found.values(), strict=True)
    means = [[sum(of) / len(found) for of in zip(*column, strict=True)] for column in columns]
    yield f"| **mean** | {' | '.join(cells('', means))} |"


def _many(found: Found) -> Iterable[str]:
    heads = ["learner", "classes", "examples", "seconds", "memory, MB", "training error"]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for item, (name, n_classes, n) in classes.MANY.items():
        one = found[item]
        figures = f"{_short(one['seconds'])} | {one['mb']:,.0f} | {one['error']:.1f} %"
        yield f"| {name} | {n_classes:,} | {n:,} | {figures} |"


def _all(names: Iterable[str], call: Callable[..., Any]) -> dict[str, Callable[[bool], Any]]:
    return {name: partial(call, name) for name in names}


def _is_of_events(name: str) -> bool:
    return name.startswith("events-") or name in ("replay-parquet", "import", "first-event")


_RESULTS = "benchmarks/results"
_CLASSES = f"{_RESULTS}/classes.md"
_SCENARIOS = [one.id for one in SCENARIOS if not one.only_by_name]

SECTIONS = {
    "events": Section(
        _all(filter(_is_of_events, _SCENARIOS), _peers),
        {
            (f"{_RESULTS}/events.md", "events"): tables.summary,
            ("README.md", "events"): tables.front,
        },
        True,
        15,
    ),
    "peers": Section(
        _all((name for name in _SCENARIOS if not _is_of_events(name)), _peers),
        {(f"{_RESULTS}/optimum.md", "peers"): tables.summary},
        True,
        60,
    ),
    "optimum": Section(
        _all(tables.OPTIMUM, _to_the_optimum),
        {
            (f"{_RESULTS}/optimum.md", "optimum"): tables.optimum,
            ("README.md", "front"): tables.front_optimum,
        },
        True,
        20,
    ),
    "which": Section(
        _all(which_learner.STREAMS, which_learner.of_stream),
        {(f"{_RESULTS}/which.md", "which"): lambda found: which_learner.table(found).splitlines()},
        True,
        20,
    ),
    "drift": Section(
        _all(drift.STREAMS, drift.measure),
        {(f"{_RESULTS}/drift.md", "drift"): drift.table},
        False,
        40,
    ),
    "overlap": Section(
        _all(classes.OVERLAPPING, classes.of_overlap), {(_CLASSES, "overlap"): _overlap}, True, 2
    ),
    "streams": Section(
        _all(classes.STREAMS, classes.of_stream), {(_CLASSES, "streams"): _streams}, True, 3
    ),
    "separate": Section(
        _all(classes.NAMES, classes.of_problem), {(_CLASSES, "separate"): _separate}, True, 15
    ),
    "bounds": Section(
        _all(classes.BOUNDED, classes.of_bounds), {(_CLASSES, "bounds"): _bounds}, False, 10
    ),
    "many": Section(_all(classes.MANY, classes.of_many), {(_CLASSES, "many"): _many}, True, 2),
}
