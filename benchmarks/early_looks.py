"""Second looks while the stream runs, not only by `finish`: ``benchmarks.early_looks``.

Progressive errors of LASVM in % and seconds of the processor on the first 6,000 rows of some
streams: as it is; with `finish` after 1,024, 2,048, ... events; with a look at a random row of the
reserve for each event, a hundred together; and with two REPROCESS steps an event, to compare with
another use of the time. Of the streams of random order, means of three orders. Started with
``python -m``; names of streams select some of them.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.default_streams import streams
from streamsvm import LASVMClassifier, predict_then_learn_many
from streamsvm.support.rows import taken

FIRST, BLOCK, N_ROWS = 1024, 100, 6000
IN_ORDER = ("elec2", "covtype_first20k")
NAMES = ("Bananas", "adult_train", "letter_train", "covtype_sample10k", *IN_ORDER)


def look_at_some(model: Any, rng: np.random.Generator) -> None:
    """Learn random rows of the reserve that are not kept, whether they violate or not."""
    looks = model.solver.revisits(model.model)
    outside = np.flatnonzero(~np.isin(looks._facts["number"], model.kept_numbers()))
    if len(outside):
        rows = np.sort(rng.choice(outside, min(BLOCK, len(outside)), replace=False))
        looks._add_rows(rows, (looks._f_of(taken(looks._x, rows)),))


def run(x: np.ndarray, y: np.ndarray, how: str) -> tuple[float, float]:
    """Return the progressive error in % and the seconds of the processor."""
    model = LASVMClassifier(reprocess=2) if how == "reprocess=2" else LASVMClassifier()
    rng, right, start = np.random.default_rng(0), 0, 0
    began = time.process_time()
    while start < len(y):
        stop = start + BLOCK if how == "each event" else max(FIRST, 2 * start)
        predicted = predict_then_learn_many(model, x[start:stop], y[start:stop].tolist())
        right += int((np.array(predicted, object) == y[start:stop]).sum())
        start = stop
        if FIRST <= start < len(y):
            if how == "powers of two":
                model.finish()
            elif how == "each event":
                look_at_some(model, rng)
    return 100.0 * (1.0 - right / len(y)), time.process_time() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    ways = ("as it is", "powers of two", "each event", "reprocess=2")
    print(f"| stream | {' | '.join(ways)} |\n|{'---|' * 5}")
    for name in parser.parse_args().names:
        x, y = streams(N_ROWS)[name](N_ROWS)
        orders = [np.arange(len(y))]
        if name not in IN_ORDER:
            orders = [np.random.default_rng(seed).permutation(len(y)) for seed in range(3)]
        cells = []
        for how in ways:
            run(x[:1500], y[:1500], how)  # compiled code is loaded before the clock runs
            error, seconds = np.mean([run(x[order], y[order], how) for order in orders], axis=0)
            cells.append(f"{error:.2f}, {seconds:.2f} s")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
