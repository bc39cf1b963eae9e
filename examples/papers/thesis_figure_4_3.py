"""Figure 4.3 of Bordes' thesis (2010, section 4.1.3): the Huller on the digits of MNIST.

Ten classifiers, each digit against the rest, gamma .005: one and two epochs of the Huller, one and
ten of the averaged perceptron, one epoch of LASVM (C 1000), and LIBSVM (C 1000) with ``--libsvm``.
Expected: the Huller errs like LIBSVM after one epoch, with fewer support vectors and in less time;
the averaged perceptron is fast, errs more after one epoch, and comes near after ten.
"""

import time
from typing import Any, NamedTuple

import numpy as np
import replication
import thesis

from streamsvm import HullerClassifier, KernelPerceptronClassifier, LASVMClassifier


class Figures(NamedTuple):
    """One classifier: error in %, support vectors and seconds of the processor."""

    error: float
    vectors: int
    seconds: float


def epochs(model: Any, task: thesis.Task, wanted: tuple[int, ...]) -> list[Figures]:
    """Learn epoch after epoch; return the figures after those wanted."""
    ids, found, seconds = np.arange(1, len(task.y) + 1), [], 0.0
    for epoch in range(1, max(wanted) + 1):
        start = time.process_time()
        model.learn_many(task.x, task.y, ids=ids)
        seconds += time.process_time() - start
        if epoch in wanted:
            found.append(Figures(thesis.error(model, task), model.n_support_vectors, seconds))
    return found


def learnt(task: thesis.Task, seed: int) -> dict[str, Figures]:
    """Return the figures of our learners."""
    huller = epochs(HullerClassifier(task.kernel, cache_mb=256, seed=seed), task, (1, 2))
    perceptron = epochs(KernelPerceptronClassifier(task.kernel), task, (1, 10))
    lasvm = epochs(LASVMClassifier(task.kernel, C=task.C, cache_mb=256), task, (1,))
    names = ("Huller x 1", "Huller x 2", "averaged perceptron x 1", "x 10", "LASVM x 1")
    return dict(zip(names, [*huller, *perceptron, *lasvm], strict=True))


def one_against_rest(task: thesis.Task, digit: int, with_libsvm: bool) -> dict[str, Figures]:
    """Return the figures of all solvers for one digit."""
    own = task._replace(y=task.y == digit, y_test=task.y_test == digit)
    found = learnt(own, seed=0)
    if with_libsvm:
        svc = thesis.libsvm(own)
        found["LIBSVM"] = Figures(svc.error, svc.n_support_vectors, svc.seconds)
    return found


def plots(options: Any, digits: list[int], found: list[dict[str, Figures]]) -> None:
    """Draw the four parts of the figure."""
    for name, label in (
        ("error", "test error in %"),
        ("seconds", "seconds"),
        ("vectors", "support vectors"),
    ):
        curves = {way: (digits, [getattr(f[way], name) for f in found]) for way in found[0]}
        path = options.out / f"thesis_figure_4_3_{name}.png"
        replication.plot(path, curves, "digit", label, points=True)
    by_vectors = {
        way: tuple(zip(*sorted((f[way].vectors, f[way].seconds) for f in found), strict=True))
        for way in found[0]
    }
    path = options.out / "thesis_figure_4_3_seconds_by_vectors.png"
    replication.plot(path, by_vectors, "support vectors", "seconds", points=True)


def main() -> None:
    options = replication.options(__doc__, limit=None, libsvm="an hour on one core")
    task = thesis.load(options.data, "mnist", 0, options.limit)
    digits = sorted(set(task.y_test.tolist()))
    # Compiled code is loaded before the clock runs.
    learnt(task._replace(x=task.x[:70], y=task.y[:70] == task.y[0], y_test=task.y_test == 0), 0)
    found = [one_against_rest(task, digit, options.libsvm) for digit in digits]
    rows = [
        [f"digit {digit}"]
        + [f"{f.error:.2f}, {f.vectors:,}, {f.seconds:.1f}" for f in own.values()]
        for digit, own in zip(digits, found, strict=True)
    ]
    means = ["mean error %, sums of SV and seconds"]
    for way in found[0]:
        error = np.mean([own[way].error for own in found])
        vectors, seconds = (sum(f[way][i] for f in found) for i in (1, 2))
        means.append(f"{error:.3f}, {vectors:,}, {seconds:.0f}")
    plots(options, digits, found)
    replication.table(options.out / "thesis_figure_4_3.md", ["", *found[0]], [*rows, means])


if __name__ == "__main__":
    main()
