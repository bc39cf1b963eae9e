"""Figure 2 of Usunier, Bordes and Bottou (2010): the gap along a pass over Adult.

Normalised duality gap of the averaged classifier of Algorithms 1 and 2. Expected: it stays level
over the pass, though the problem grows all the time; Algorithm 2 with K = 10 is about as near to
the optimum as Algorithm 1 with K = 20.
"""

import numpy as np
import replication

from streamsvm import TrackingMonitor

EVERY = 250
SETTINGS = {
    "Algorithm 1, K = 10": (10, False),
    "Algorithm 1, K = 20": (20, False),
    "Algorithm 2, K = 10": (10, True),
    "Algorithm 2, K = 20": (20, True),
}


def run(problem: replication.Problem, K: int, process: bool, seed: int, every: int):
    """Return (examples, gaps, certificates, those of the paper, test error)."""
    monitor = TrackingMonitor(replication.new_model(problem, K, process, seed), every=every)
    for start in range(0, len(problem.y), every):
        part = slice(start, start + every)
        monitor.learn_many(problem.x[part], problem.y[part])
    history = monitor.history
    names = ("n_examples", "gap", "certificate", "certificate_papers")
    columns = [history.column(name) for name in names]
    return (*columns, replication.error(monitor.model, problem))


def main() -> None:
    options = replication.options(__doc__, limit=None)
    whole = replication.adult(options.data)
    every = min(EVERY, max(1, (options.limit or len(whole.y)) // 8))
    curves, rows = {}, []
    for name, (K, process) in SETTINGS.items():
        runs = [
            run(replication.shuffled(whole, seed, options.limit), K, process, seed, every)
            for seed in range(options.runs)
        ]
        t, gaps = runs[0][0], np.mean([r[1] for r in runs], axis=0)
        curves[name] = (t, gaps)
        thirds = [f"{part.mean():.4f}" for part in np.array_split(gaps, 3)]
        bounds = [f"{np.mean([r[i][-1] for r in runs]):.4f}" for i in (2, 3)]
        error = np.mean([r[4] for r in runs])
        rows.append([name, *thirds, f"{gaps.mean():.4f}", *bounds, f"{error:.2f}"])
    replication.plot(options.out / "figure2.png", curves, "examples", "normalised gap", log="y")
    head = [
        "",
        "gap, 1st third",
        "2nd",
        "3rd",
        "mean",
        "certificate",
        "the paper's",
        "test error %",
    ]
    replication.table(options.out / "figure2.md", head, rows)


if __name__ == "__main__":
    main()
