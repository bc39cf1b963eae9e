"""Figures 6.3 and 6.4 of Bordes' thesis (2010, section 6.2.2): the ambiguous house.

Alignment error of 500 test sentences (a sentence counts if one of its symbols is wrong, or at the
wrong word) by the sentences learnt: at ambiguities 0 to 3 with random exploration (6.3), and at
ambiguity 3 with the three explorations (6.4; expected: left to right is penalised). One pass, C =
.1, means over `--runs` seeds. The data are generated; the published figures are plots.
"""

from typing import Any

import numpy as np
import replication
from ambiguous_house import house

from streamsvm import OSPASParser

SENTENCES, TESTED, POINTS = 2000, 500, 20


def curve(exploration: str, ambiguity: int, options: Any) -> tuple[list[int], list[float]]:
    """Return numbers of sentences, and the alignment errors after them in %."""
    every = max(1, options.limit // POINTS)
    sizes = list(range(every, options.limit + 1, every))
    runs = []
    for run in range(options.runs):
        test = list(house(TESTED, 0, 1000 + run))
        model = OSPASParser(exploration=exploration, window=0, averaged=False, seed=run)
        stream, errors = list(house(options.limit, ambiguity, run)), []
        for size in sizes:
            part = stream[size - every : size]
            model.learn_many([s.words for s in part], [s.candidates for s in part])
            found = model.predict_symbols_many([s.words for s in test])
            wrong = [a != s.symbols for a, s in zip(found, test, strict=True)]
            errors.append(100.0 * float(np.mean(wrong)))
        runs.append(errors)
    return sizes, np.mean(runs, axis=0).tolist()


def main() -> None:
    options = replication.options(__doc__, limit=SENTENCES, needs_data=False)
    levels = {f"ambiguity {n}": curve("random", n, options) for n in range(4)}
    others = {name: curve(name, 3, options) for name in ("random", "left_to_right", "order_free")}
    x, y = "sentences", "alignment error, %"
    replication.plot(options.out / "thesis_figure_6_3.png", levels, x, y)
    replication.plot(options.out / "thesis_figure_6_4.png", others, x, y)
    rows = []
    for figure, curves in (("6.3", levels), ("6.4", others)):
        for name, (sizes, errors) in curves.items():
            above = [i for i, error in enumerate(errors) if error >= 5.0]
            n = 1 + max(above, default=-1)
            stays = f"below 5 % from {sizes[n]} on" if n < len(sizes) else "not below 5 %"
            rows.append([f"{figure}: {name}", f"{errors[-1]:.1f} %, {stays}"])
    replication.table(options.out / "thesis_figure_6_3.md", ["", "ours"], rows)


if __name__ == "__main__":
    main()
