"""How long single events take: ``python -m benchmarks.stalls``.

For each stream and learner, the CPU time of its events: the median, the longest, and where: the
number of the event, and what the learner was doing. A first pass over the stream compiles, and is
not counted. Then the memory of the process and what the model says of its own. Names select some
of the rows of the table; ``--events N`` is the length of the streams, 2,600; ``--cold`` counts the
first pass.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from streamsvm import AdaptiveSVMClassifier, LaRankClassifier, LASVMClassifier
from streamsvm._compiling import clock

Events = tuple[list[dict[Any, float]], list[Any]]


def blobs(n: int, n_classes: int, d: int, unit: float = 1.0) -> Events:
    """Return events of classes that overlap a little; features of several units."""
    draws = np.random.default_rng(0)
    centres = draws.normal(size=(n_classes, d))
    classes = draws.integers(0, n_classes, n)
    rows = centres[classes] + 1.2 * draws.normal(size=(n, d))
    rows *= unit ** draws.random(d)
    return [dict(enumerate(row)) for row in rows.tolist()], classes.tolist()


def texts(n: int, n_words: int, n_classes: int = 2) -> Events:
    """Return bags of 20 words, some of which tell the class."""
    draws = np.random.default_rng(0)
    classes = draws.integers(0, n_classes, n).tolist()
    events = []
    for c in classes:
        words = (n_words * draws.random(20) ** 3).astype(int).tolist()
        words[:3] = (
            (n_words * draws.random(3) ** 2).astype(int) // n_classes * n_classes + c
        ).tolist()
        events.append({f"w{word}": 1.0 for word in words})
    return events, classes


def cases(n: int) -> dict[str, tuple[Callable[[], Any], Callable[[], Events]]]:
    """Return learners and streams by name."""
    many, wide = (lambda: blobs(n, 200, 20, 10.0)), (lambda: blobs(n, 2, 2000, 10.0))
    plain, words = (lambda: blobs(n, 2, 10, 10.0)), (lambda: texts(n, 2000))

    def lasvm(**given: Any) -> Callable[[], Any]:
        return lambda: LASVMClassifier(seed=1, **given)

    def larank() -> Any:
        return LaRankClassifier(seed=1)

    def adaptive() -> Any:
        return AdaptiveSVMClassifier(seed=1)

    found: dict[str, tuple[Any, Any]] = {}
    for name, stream in ("plain", plain), ("wide", wide), ("words", words), ("many", many):
        found |= {f"{name} lasvm": (lasvm(), stream), f"{name} larank": (larank, stream)}
        found[f"{name} adaptive"] = adaptive, stream
    found["many ovr"] = lasvm(multiclass="ovr"), many
    return found


def timed(model: Any, events: Events) -> Iterator[tuple[float, float]]:
    """Learn events; yield the CPU seconds of each, and those of compiling."""
    for x, y in zip(*events, strict=True):
        compiled, start = clock.seconds, time.process_time()
        model.predict_one(x)
        model.learn_one(x, y)
        yield time.process_time() - start, clock.seconds - compiled


def resident() -> tuple[float, float]:
    """Return the megabytes of the process now, and at most so far."""
    with open("/proc/self/status") as file:
        found = dict(line.split(":", 1) for line in file)
    return tuple(int(found[name].split()[0]) / 1e3 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--events", type=int, default=2600)
    parser.add_argument("--cold", action="store_true", help="count the first pass")
    given = parser.parse_args()
    print("| case | total s | median ms | longest ms (event) | compiled after 100 s | MB | model |")
    print("|---" * 7 + "|")
    for name, (new, stream) in cases(given.events).items():
        if given.names and name not in given.names:
            continue
        events = stream()
        for _ in range(1 if given.cold else 2):
            before = resident()[0]
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
            model = new()
            seconds, compiled = np.array(list(timed(model, events))).T
            memory = [size - before for size in resident()]
        worst = np.argsort(-seconds)[:5]
        listed = ", ".join(f"{1e3 * seconds[i]:.0f} ({i + 1:,})" for i in worst)
        late = compiled[100:].sum()
        sizes = f"{memory[0]:.0f}, most {memory[1]:.0f}"
        times = f"{seconds.sum():.1f} | {1e3 * np.median(seconds):.2f} | {listed} | {late:.1f}"
        print(f"| {name} | {times} | {sizes} | {model.memory_usage / 1e6:.0f} |", flush=True)


if __name__ == "__main__":
    main()
