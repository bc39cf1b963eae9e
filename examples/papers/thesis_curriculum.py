"""How good a selection is as a teacher, by the monitor: end of 4.4.4 of Bordes' thesis (2010).

The quality of a curriculum is the share of steps that do nothing, kappa: the thesis defines it, and
has no figures. Shown are kappa, the seen gap and the certificate by examples learnt, on Adult, for
averaged tracking (K = 10, C 1) and LASVM (C 100). Expected: the guarantee holds for any selection;
near the border few steps do nothing.
"""

import numpy as np
import replication
import thesis

from streamsvm import LASVMClassifier, TrackingMonitor, TrackingSVMClassifier
from streamsvm.selection import Active, AutoActive, Gradient, Random

RULES = {
    "random": Random(seed=1),
    "gradient": Gradient(),
    "active": Active(),
    "autoactive": AutoActive(),
}
COLUMNS = {"kappa": "share of steps that did nothing", "seen_gap": "seen gap"}
_CHUNK = 250


def main() -> None:
    options = replication.options(__doc__, limit=None)
    task = thesis.load(options.data, "adult", 0, options.limit)
    n = min(3000, len(task.y) // 4)
    learners = {
        "tracking": lambda rule: TrackingSVMClassifier(
            task.kernel, C=1.0, K=10, seed=0, selection=rule
        ),
        "lasvm": lambda rule: LASVMClassifier(task.kernel, C=task.C, selection=rule),
    }
    rows = []
    for system, new in learners.items():
        curves: dict[str, dict[str, tuple]] = {column: {} for column in COLUMNS}
        for name, rule in RULES.items():
            model = new(rule)
            monitor, at = TrackingMonitor(model, every=max(1, n // 30)), 0
            while model.n_examples < n:
                chunk = (at + np.arange(_CHUNK)) % len(task.y)
                at += _CHUNK
                x = np.ascontiguousarray(task.x[chunk])
                monitor.learn_many(x, task.y[chunk], ids=chunk + 1)
            for column, found in curves.items():
                taken = monitor.history.column("n_examples")
                found[name] = (taken, monitor.history.column(column))
            last = monitor.get()
            cells = [f"{last['n_seen']:,}", f"{model.n_examples:,}", f"{last['kappa']:.2f}"]
            cells += [f"{last[c]:.3f}" for c in ("seen_gap", "kept_certificate")]
            rows.append([system, name, *cells, f"{thesis.error(model, task):.2f}"])
        for column, label in COLUMNS.items():
            path = options.out / f"thesis_curriculum_{system}_{column}.png"
            replication.plot(path, curves[column], "examples learnt", label)
    head = ["learner", "selection", "came", "learnt", "kappa", "seen gap", "bound", "error %"]
    replication.table(options.out / "thesis_curriculum.md", head, rows)


if __name__ == "__main__":
    main()
