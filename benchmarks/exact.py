"""The exact SVM beside scikit-learn's SVC, fitted again: ``python -m benchmarks.exact``.

The first 1,000 rows of Banana, gamma .5, C 1 and 316: seconds of processor time of an event, of a
deletion, and of the leave-one-out margins of all rows (exact, estimated); and of SVC for one fit,
and for a fit without each of its support vectors. Then milliseconds of changes of all rows.

``--equal``: Banana, Adult and USPS at four costs, compared with SVC after every 25 events.

``--adult N``: the first rows of Adult, gamma .005, C 1, up to N, at several sizes: an event (the
mean of the last 200), all events so far, memory, a deletion (the mean of 20 support vectors), 100
at once; SVC, one fit, and a fit after each event so far, whose sum is that of straight lines
between the sizes measured; LASVM, all rows with `finish`, and the same deletions by `unlearn`.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.svm import SVC

from benchmarks.common import seconds_of
from benchmarks.golden import problems
from benchmarks.golden.exact import COSTS, PROBLEMS, Difference, Exact
from streamsvm import IncrementalSVMClassifier, LASVMClassifier, kernels

SIZES = (500, 1000, 2000, 5000, 10_000, 20_000)
LAST = 200
"""An event is the mean of so many."""

ALONE, TOGETHER = 20, 100
"""So many support vectors are taken back one by one, and then so many at once."""


def learn(model: IncrementalSVMClassifier, x: np.ndarray, y: np.ndarray) -> float:
    """Learn rows as events, one by one; return the seconds."""
    rows = [dict(enumerate(row)) for row in x.tolist()]
    events = list(zip(rows, y.tolist(), strict=True))
    return seconds_of(lambda: [model.learn_one(*event) for event in events])[1]


def deletions(model: IncrementalSVMClassifier) -> tuple[float, float]:
    """Return the seconds of a deletion, and of 100 at once, of support vectors of a copy."""
    model = copy.deepcopy(model)
    numbers = model.support_vectors().entered[: ALONE + TOGETHER].tolist()
    _, of_some = seconds_of(lambda: [model.unlearn_one(number) for number in numbers[:ALONE]])
    return of_some / ALONE, seconds_of(lambda: model.unlearn_many(numbers[ALONE:]))[1]


def told(found: Difference) -> str:
    """Say how far the exact SVM and SVC are apart."""
    return (
        f"optimality is violated by {found.violation:.1e}, of SVC by {found.svc_violation:.1e}; "
        f"decisions differ by {found.svc_decision:.1e}, the dual by {found.svc_dual:.1e} of itself;"
        f" from SVC's solution in double precision by {found.decision:.1e} and {found.dual:.1e}"
    )


def refitted(exact: Exact, signs: np.ndarray) -> float:
    """Return the leave-one-out error by fitting SVC without each of its support vectors."""
    x, y = exact.x, signs
    svc = SVC(C=exact.C, gamma=exact.kernel.gamma, cache_size=500).fit(x, y)
    margins = y * svc.decision_function(x)
    for i in svc.support_.copy():
        kept = np.arange(len(y)) != i
        margins[i] = y[i] * svc.fit(x[kept], y[kept]).decision_function(x[i : i + 1])[0]
    return float(np.mean(margins <= 0.0))


def banana(C: float) -> None:
    """Print the times on Banana for a cost."""
    exact = Exact(problems.banana(), 1000, C)
    x, y = exact.x, exact.y
    for _ in range(2):  # compiled code is loaded first
        model = exact.model()
        seconds = learn(model, x, y)
        model.leave_one_out()
        of_one, _ = deletions(model)
    loo, of_loo = seconds_of(model.leave_one_out)
    estimated, of_estimate = seconds_of(lambda: model.leave_one_out(estimate=True))
    signs = np.where(y == model.labels[1], 1.0, -1.0)
    svc = SVC(C=C, gamma=exact.kernel.gamma, cache_size=500)
    _, of_fit = seconds_of(lambda: svc.fit(x, y))
    error, of_refits = seconds_of(lambda: refitted(exact, signs))
    print(
        f"Banana, C {C:g}: {model.n_support_vectors} SV; event {1e6 * seconds / 1000:.0f} us, "
        f"deletion {1e3 * of_one:.2f} ms, SVC fit {1e3 * of_fit:.1f} ms; leave one "
        f"out {of_loo:.3f} s (error {loo.error:.3%}), estimated {of_estimate:.3f} s "
        f"({estimated.error:.3%}), SVC fits without each SV {of_refits:.2f} s ({error:.3%}); "
        f"{told(exact.compare(model))}",
        flush=True,
    )


def changes(C: float) -> None:
    """Print the times of changes of all rows of Banana: another cost, another gamma, 200 fewer."""
    exact = Exact(problems.banana(), 1000, C)
    model, found = exact.model(), list[str]()
    learn(model, exact.x, exact.y)
    gamma, gone = exact.kernel.gamma, np.random.default_rng(0).permutation(1000)[:200] + 1
    of_all: dict[str, Callable[[Any], Any]] = {
        "C x 2": lambda one: one.set_C(2.0 * C),
        "C x 100": lambda one: one.set_C(100.0 * C),
        "gamma / 2": lambda one: one.set_kernel(kernels.RBF(gamma=gamma / 2)),
        "gamma x 2": lambda one: one.set_kernel(kernels.RBF(gamma=2 * gamma)),
        "200 together": lambda one: one.unlearn_many(gone),
        "200 singly": lambda one: [one.unlearn_one(int(number)) for number in gone],
    }
    for name, change in of_all.items():
        times = [seconds_of(partial(change, copy.deepcopy(model)))[1] for _ in range(3)]
        found.append(f"{name} {1e3 * min(times):.1f} ms")
    print(f"Banana, C {C:g}: {', '.join(found)}", flush=True)


def equal(name: str, C: float) -> None:
    """Print the largest differences from SVC after every 25 events of a problem."""
    exact = Exact(getattr(problems, name)(), PROBLEMS[name], C)
    model, found = exact.model(), []
    for n in range(0, PROBLEMS[name], 25):
        model.learn_many(exact.x[n : n + 25], exact.y[n : n + 25])
        if len(model.labels) == 2:
            found.append(exact.compare(model))
    worst = Difference(*np.max(found, axis=0).tolist())
    print(f"{name}, C {C:g}, {len(found)} times: {told(worst)}", flush=True)


def lasvm(x: np.ndarray, y: np.ndarray, kernel: Any) -> str:
    """Return the times of LASVM on rows."""
    model = LASVMClassifier(kernel)
    _, of_all = seconds_of(lambda: (model.learn_many(x, y), model.finish()))
    memory = model.memory_usage
    numbers = model.support_vectors().entered[: ALONE + TOGETHER].tolist()
    _, of_some = seconds_of(lambda: [model.unlearn(number) for number in numbers[:ALONE]])
    _, of_many = seconds_of(lambda: model.unlearn(numbers[ALONE:]))
    return (
        f"{of_all:.2f} s, a deletion {1e3 * of_some / ALONE:.0f} ms, {TOGETHER} at once "
        f"{1e3 * of_many:.0f} ms, {memory / 1e6:.0f} MB"
    )


def adult(most: int) -> None:
    """Print the times on rows of Adult by their number."""
    problem = problems.adult()
    x, y, kernel = problem.x, problem.y, problem.kernel
    model, n, seconds, fits = IncrementalSVMClassifier(kernel), 0, 0.0, [(0, 0.0)]
    LASVMClassifier(kernel).learn_many(x[:300], y[:300])  # compiles
    for size in (size for size in SIZES if size <= most):
        seconds += learn(model, x[n : size - LAST], y[n : size - LAST])
        last = learn(model, x[size - LAST : size], y[size - LAST : size])
        seconds, n = seconds + last, size
        svc = SVC(C=1.0, gamma=kernel.gamma, cache_size=500)
        fits.append((n, seconds_of(lambda svc=svc, n=n: svc.fit(x[:n], y[:n]))[1]))
        at, of_fits = zip(*fits, strict=True)
        of_one, of_many = deletions(model)
        print(
            f"Adult, {n:,} rows: {model.n_support_vectors:,} SV; event {1e3 * last / LAST:.2f} ms, "
            f"all {seconds:.1f} s, a deletion {1e3 * of_one:.1f} ms, {TOGETHER} at once "
            f"{1e3 * of_many:.0f} ms, {model.memory_usage / 1e6:.0f} MB; SVC fit "
            f"{of_fits[-1]:.2f} s, after each event {np.trapezoid(of_fits, at):,.0f} s; LASVM "
            f"{lasvm(x[:n], y[:n], kernel)}",
            flush=True,
        )


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--equal", action="store_true", help="compare solutions instead of times")
    parser.add_argument("--adult", type=int, default=0, help="rows of Adult; default none")
    given = parser.parse_args()
    if given.equal:
        for name in PROBLEMS:
            for C in COSTS:
                equal(name, C)
        return
    for C in (1.0, 316.0):
        banana(C)
        changes(C)
    adult(given.adult)


if __name__ == "__main__":
    main()
