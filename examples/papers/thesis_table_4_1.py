"""Table 4.1 and figures 4.5 to 4.8 of Bordes' thesis (2010, section 4.2.5): the digits of MNIST.

Ten classifiers, each digit against the rest: gamma .005, C 1000, tau .001, a cache of 256 MB; one
and two epochs of LASVM with one REPROCESS an example, partners chosen by gradient, and finishing.
The table has the errors of the digits (figure 4.5), training times (4.6) and support vectors (4.8);
its last row is table 4.1: of the ten, the largest decision function wins. Expected: one epoch errs
a little more than LIBSVM and keeps somewhat fewer support vectors; the second closes most of that.
The row "in one" has the same ten problems in one learner, ``LASVMClassifier(multiclass="ovr")``,
which keeps each vector once.
The averaged perceptron of the figures is in ``thesis_figure_4_3.py``.
"""

import copy
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import replication
import thesis

from streamsvm import LASVMClassifier

PUBLISHED = {"LASVM x 1": "1.42, 4950 s", "LASVM x 2": "1.36, 12210 s", "LIBSVM": "1.36, 17400 s"}


class Figures(NamedTuple):
    """One classifier: its decision function on the test set, support vectors and seconds."""

    scores: np.ndarray
    vectors: int
    seconds: float  # of the processor


def new_model(task: thesis.Task, cache_mb: float = 256, **more: Any) -> LASVMClassifier:
    """Return LASVM as in the thesis."""
    return LASVMClassifier(
        task.kernel,
        C=task.C,
        reprocess=1,
        delta_max=None,
        second_order=False,
        cache_mb=cache_mb,
        reserve=0,
        **more,
    )


def epochs(
    task: thesis.Task, model: LASVMClassifier
) -> Iterator[tuple[str, LASVMClassifier, float]]:
    """Learn one epoch and two; yield name, finished model and seconds so far of each."""
    ids, seconds = np.arange(1, len(task.y) + 1), 0.0
    for epoch in ("LASVM x 1", "LASVM x 2"):
        start = time.process_time()
        model.learn_many(task.x, task.y, ids=ids)
        seconds += time.process_time() - start
        # The second epoch continues from what was there before the finishing.
        finished = copy.deepcopy(model)
        start = time.process_time()
        finished.finish()
        yield epoch, finished, seconds + time.process_time() - start


def lasvm(task: thesis.Task) -> dict[str, Figures]:
    """Learn one digit against the rest."""
    found = {}
    for epoch, finished, seconds in epochs(task, new_model(task)):
        scores = finished.decision_function_many(task.x_test)
        found[epoch] = Figures(scores, finished.n_support_vectors, seconds)
    return found


def in_one(task: thesis.Task) -> dict[str, str]:
    """Learn all digits against the rest in one learner; return its errors, vectors and seconds."""
    found = {}
    for epoch, finished, seconds in epochs(task, new_model(task, 10 * 256, multiclass="ovr")):
        wrong = thesis.error(finished, task)
        found[epoch] = f"{wrong:.2f}, {finished.n_support_vectors:,}, {seconds:.0f}"
    return found


def libsvm(task: thesis.Task) -> Figures:
    """Train scikit-learn's SVC."""
    svc, seconds = thesis.trained_svc(task, cache_mb=256)
    scores = svc.decision_function(task.x_test.astype(float))
    return Figures(scores, int(np.sum(svc.n_support_)), seconds)


def one_against_rest(task: thesis.Task, digit: int, with_libsvm: bool) -> dict[str, Figures]:
    """Return the figures of all solvers for one digit."""
    own = task._replace(y=task.y == digit, y_test=task.y_test == digit)
    return lasvm(own) | ({"LIBSVM": libsvm(own)} if with_libsvm else {})


def plots(options: Any, digits: list[int], found: list[dict[str, Figures]], task: Any) -> None:
    """Draw figures 4.5 to 4.8."""
    names, out = list(found[0]), options.out

    def curves(measure: Any) -> dict[str, tuple]:
        values = {name: [measure(d, f[name]) for d, f in enumerate(found)] for name in names}
        return {name: (digits, column) for name, column in values.items()}

    def wrong(d: int, f: Figures) -> float:
        return 100 * float(np.mean((f.scores > 0) != (task.y_test == digits[d])))

    for number, label, measure in (
        (5, "test error in %", wrong),
        (6, "seconds", lambda d, f: f.seconds),
        (8, "support vectors", lambda d, f: f.vectors),
    ):
        path = out / f"thesis_figure_4_{number}.png"
        replication.plot(path, curves(measure), "digit", label, points=True)
    by_vectors = {
        name: tuple(zip(*sorted((f[name].vectors, f[name].seconds) for f in found), strict=True))
        for name in names
    }
    path = out / "thesis_figure_4_7.png"
    replication.plot(path, by_vectors, "support vectors", "seconds", points=True)


def main() -> None:
    options = replication.options(__doc__, limit=None, libsvm="an hour on one core")
    task = thesis.load(options.data, "mnist", 0, options.limit)
    digits = sorted(set(task.y_test.tolist()))
    few = task._replace(x=task.x[:60], y=task.y[:60])
    lasvm(few._replace(y=few.y == few.y[0], y_test=task.y_test == few.y[0]))
    in_one(few)
    found = [one_against_rest(task, digit, options.libsvm) for digit in digits]
    rows = []
    for digit, figures in zip(digits, found, strict=True):
        truth = task.y_test == digit
        cells = [
            f"{100 * np.mean((f.scores > 0) != truth):.2f}, {f.vectors:,}, {f.seconds:.1f}"
            for f in figures.values()
        ]
        rows.append([f"digit {digit}: error %, SV, seconds", *cells])
    ten, published = ["all: error %, seconds"], ["published, table 4.1"]
    for name in found[0]:
        winners = np.argmax([f[name].scores for f in found], axis=0)
        wrong = 100 * float(np.mean(np.array(digits)[winners] != task.y_test))
        ten.append(f"{wrong:.2f}, {sum(f[name].seconds for f in found):.0f}")
        published.append(PUBLISHED[name])
    together = in_one(task)
    one = ["in one: error %, SV, seconds", *(together.get(name, "") for name in found[0])]
    plots(options, digits, found, task)
    head = ["", *found[0]]
    replication.table(options.out / "thesis_table_4_1.md", head, [*rows, ten, one, published])


if __name__ == "__main__":
    main()
