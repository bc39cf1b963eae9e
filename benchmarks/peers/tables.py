"""The figures as text: for a terminal, and as Markdown for benchmarks/results and the README."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks.peers.scenarios import BY_ID


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _cells(result: dict[str, Any], factor: float, unit: str) -> list[str]:
    if "absent" in result:
        return [f"absent: {result['absent']}", "", "", "", "", ""]
    time = f"{_number(result['seconds'] * factor)} {unit}"
    if result.get("elsewhere"):
        return [time + " (another run, 2-core Xeon)", "", f"{result['error']:.2f} %", "", "", ""]
    ratio = result.get("ratio", 1.0)
    spread = ""
    if result["runs"] > 1 and ratio != 1.0:
        spread = f" ({_number(result['ratio_low'])}-{_number(result['ratio_high'])})"
    support = result.get("n_support_vectors")
    values = result.get("kernel_values")
    return [
        time,
        "" if ratio == 1.0 else f"{_number(ratio)}{spread}",
        f"{result['error']:.2f} %" if "error" in result else "",
        "" if support is None else f"{support:,.0f}",
        "" if values is None else f"{values / 1e6:,.0f}M",
        f"{result['peak_mb']:,.0f}",
    ]


HEADER = ("system", "time", "times ours", "error", "SV", "kernel values", "peak MB")


def table(scenario_id: str, results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a Markdown table of one scenario."""
    scenario = BY_ID[scenario_id]
    yield f"**{scenario_id}**: {scenario.shows}"
    yield ""
    yield "| " + " | ".join(HEADER) + " |"
    yield "|---" * len(HEADER) + "|"
    for name, result in results.items():
        yield "| " + " | ".join([name, *_cells(result, scenario.factor, scenario.unit)]) + " |"
    yield ""


def summary(scenarios: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table of many systems: a row a scenario, in their order."""
    yield "| workload | streamsvm: time, error | others, and their time beside ours (error) |"
    yield "|---|---|---|"
    for name in BY_ID:
        if name in scenarios:
            yield one_line(name, scenarios[name])


def one_line(scenario_id: str, results: dict[str, dict[str, Any]]) -> str:
    """Return a row of that table: ours, and the time of each of the others beside it."""
    scenario = BY_ID[scenario_id]
    (name, own), *others = results.items()
    if "seconds" not in own:
        return f"| {scenario.shows} | absent | |"
    error = f", {own['error']:.2f} %" if "error" in own else ""
    ours = f"{name}: {_number(own['seconds'] * scenario.factor)} {scenario.unit}{error}"
    peers = "; ".join(
        f"{peer} {_beside(result['ratio'])}"
        + (f" ({result['error']:.2f} %)" if "error" in result else "")
        for peer, result in others
        if "ratio" in result and not result.get("elsewhere")
    )
    return f"| {scenario.shows} | {ours} | {peers} |"


def _beside(ratio: float) -> str:
    """Return in words how a time is beside ours, from the one divided by the other."""
    if ratio >= 1.0:
        return f"{_number(ratio)} times as long"
    return f"{_number(1.0 / ratio)} times as fast"


OPTIMUM = (
    "adult-c1", "adult-c100", "binary", "covertype-2", "mnist-8", "noisy-50k", "banana", "waveform",
    "usps-0", "usps-10", "letter", "reuters-moneyfx",
)  # fmt: skip
"""The scenarios of the table of equal errors."""


TO_THE_OPTIMUM = (
    "LASVM",
    "scikit-learn-intelex SVC",
    "scikit-learn SVC",
    "LASVM, 2 threads",
    "scikit-learn-intelex SVC, 2 threads",
    "LASVM, one pass",
)
"""The systems of that table, and of the README's."""


def _ratios(results: dict[str, dict[str, Any]]) -> list[float]:
    """Return how many times as long intelex and SVC take, ours with two threads, and intelex so."""
    own, intelex, svc, two, intelex_of_two = (results[name] for name in TO_THE_OPTIMUM[:5])
    of_two = two["wall_seconds"]
    return [
        intelex["ratio"],
        svc["ratio"],
        of_two / own["wall_seconds"],
        intelex_of_two["wall_seconds"] / of_two,
    ]


def _means(scenarios: dict[str, dict[str, Any]]) -> list[str]:
    columns = zip(*map(_ratios, scenarios.values()), strict=True)
    return [_number(math.exp(statistics.fmean(map(math.log, column)))) for column in columns]


def optimum(scenarios: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table of training to the optimum: equal errors, one and two threads.

    The last line has geometric means of the ratios.
    """
    heads = ["data", "LASVM, finished", "intelex SVC: **times ours**", "SVC: **times ours**"]
    heads += ["LASVM, 2 threads: of its time with 1", "intelex SVC, both 2 threads: **times ours**"]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for scenario_id, results in scenarios.items():
        own, *peers = (results[name] for name in TO_THE_OPTIMUM[:3])
        intelex, svc, faster, of_two = _ratios(results)
        cells = [f"{_number(own['seconds'])} s ({_error_and_mb(own)})"]
        for ratio, peer in zip((intelex, svc), peers, strict=True):
            cells.append(f"**{_number(ratio)}** ({_error_and_mb(peer)})")
        cells += [f"{faster:.2f}", f"**{_number(of_two)}**"]
        yield f"| {BY_ID[scenario_id].shows} | {' | '.join(cells)} |"
    means = [f"**{mean}**" for mean in _means(scenarios)]
    yield f"| geometric mean | | {' | '.join(means)} |"


def front_optimum(scenarios: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the README's table of trainings."""
    yield from front(scenarios)
    intelex, svc, *_ = _means(scenarios)
    shows = f"{len(scenarios)} sets ([all](benchmarks/results/optimum.md)), geometric mean"
    for name, mean in (("scikit-learn SVC", svc), ("scikit-learn-intelex SVC", intelex)):
        yield f"| {shows} | {name} | {mean} times as long as LASVM, finished | |"
        shows = ""


def _error_and_mb(one: dict[str, Any]) -> str:
    return f"{one['error']:.2f} %, {one['peak_mb']:,.0f} MB"


FRONT = {
    "events-bananas": (
        "Bananas: 5,300 events, 2 features",
        ("River KNN, lazy 1,000", "River HoeffdingTree"),
    ),
    "events-elec2": ("Elec2: 20,000 events, 8 features", ("River PAClassifier",)),
    "events-sms": ("SMS spam: events of words", ("River MultinomialNB", "River PAClassifier")),
    "events-segments": ("ImageSegments: events, 7 classes", ("River KNN, lazy 1,000",)),
    "adult-c1": (
        "Adult: 32,561 rows, 123 features",
        ("scikit-learn SVC", "scikit-learn-intelex SVC"),
    ),
    "mnist-8": (
        "MNIST, digit 8 or not: 60,000 rows",
        ("scikit-learn SVC", "scikit-learn-intelex SVC"),
    ),
    "letter": (
        "Letter: 16,000 rows, 26 classes",
        ("scikit-learn SVC", "scikit-learn-intelex SVC"),
    ),
}
"""The rows of the README's tables: scenario, its description there, the other systems."""


def front(scenarios: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table of the README: ours and a few other systems, by scenario."""
    yield "| data | system | time | error |"
    yield "|---|---|---|---|"
    for scenario_id, (shows, peers) in FRONT.items():
        if scenario_id not in scenarios:
            continue
        scenario, results = BY_ID[scenario_id], scenarios[scenario_id]
        name, own = next(iter(results.items()))
        ours = {f"**streamsvm {name}**": own}
        if one_pass := results.get("LASVM, one pass"):
            ours = {"**streamsvm LASVM**, one pass": one_pass, "the same, finished": own}
        for system, one in (ours | {peer: results[peer] for peer in peers}).items():
            time = f"{_number(one['seconds'] * scenario.factor)} {scenario.unit}"
            yield f"| {shows} | {system} | {time} | {one['error']:.2f} % |"
            shows = ""
