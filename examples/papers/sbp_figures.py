"""Figures 2 and 3 of the paper on the stochastic batch perceptron (ICML 2012, section 5).

Test error against kernel evaluations, on Adult and MNIST (digit 8 against the rest), without bias:
the stochastic batch perceptron (SBP), Pegasos, dual coordinate ascent (SDCA) and the perceptron;
and random Fourier features with the SVM behind them, for as many inner products (figure 3). With
``--libsvm``, SMO: LIBSVM, with a bias, stopped after some iterations. As in the paper an iteration
of SBP and SDCA counts n evaluations, and one of SMO 2 n; Pegasos and the perceptron count those
with their support vectors. Expected: SBP is the first near its final error, Pegasos and SDCA need
more, SMO errs much until shortly before its end, and the perceptron on Adult overfits after a pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import replication

from streamsvm import (
    KernelPegasosClassifier,
    KernelPerceptronClassifier,
    RandomFourierFeatures,
    SBPClassifier,
    SVMSGDClassifier,
    kernels,
)

Curve = tuple[list[float], list[float]]
"""Kernel evaluations, and the test error in % after so many."""

GAMMA = {"adult": 0.05, "mnist": 0.02}
NU = {"adult": 1.1e-2, "mnist": 2.21e-4}
"""Table 2 of the paper; l2 is 1 / n, and C is 1."""


class Task(NamedTuple):
    x: np.ndarray
    y: np.ndarray  # bool
    x_test: np.ndarray
    y_test: np.ndarray
    kernel: kernels.RBF
    nu: float


def load(options: Any, name: str) -> Task:
    """Return Adult, or MNIST with pixels from 0 to 1."""
    (x, y), (x_test, y_test) = (
        replication.read(options.data / f"{name}_{part}.parquet") for part in ("train", "test")
    )
    x, y = x[: options.limit], y[: options.limit]
    unit, positive = (255.0, 8) if name == "mnist" else (1.0, 1)
    kernel = kernels.RBF(gamma=GAMMA[name])
    return Task(x / unit, y == positive, x_test / unit, y_test == positive, kernel, NU[name])


def error(model: Any, task: Task) -> float:
    """Return the test error in %."""
    return 100.0 * float(np.mean(np.array(model.predict_many(task.x_test)) != task.y_test))


def marks(most: int) -> list[int]:
    """Return 64, 128, ... and `most`."""
    return [m for m in (64 * 2**i for i in range(40)) if m < most] + [most]


def sbp(task: Task, epochs: float, seed: int) -> Curve:
    """Return the curve of the stochastic batch perceptron; an epoch is n iterations."""
    n, done, found = len(task.y), 0, ([], [])
    model = SBPClassifier(task.kernel, nu=task.nu, bias=False, iterations=0, seed=seed)
    model.learn_many(task.x, task.y)
    for mark in marks(int(n * epochs)):
        model.finish(iterations=mark - done)
        done = mark
        found[0].append(float(n) * done)
        found[1].append(error(model, task))
    return found


def online(model: Any, task: Task, epochs: float, seed: int) -> Curve:
    """Return the curve of a learner that goes through the rows in random orders."""
    n, found = len(task.y), ([], [])
    draws, order, done = np.random.default_rng(seed), np.zeros(0, np.int64), 0
    for mark in marks(int(n * epochs)):
        while len(order) < mark:
            order = np.append(order, draws.permutation(n))
        rows = order[done:mark]
        model.learn_many(task.x[rows], task.y[rows], ids=rows + 1)
        done = mark
        found[0].append(max(1.0, float(model.counters["kernel_values"])))
        found[1].append(error(model, task))
    return found


def sdca(task: Task, epochs: float, seed: int) -> Curve:
    """Return the curve of dual coordinate ascent: the exact step on a row drawn uniformly."""
    n, found = len(task.y), ([], [])
    draws, y = np.random.default_rng(seed), np.where(task.y, 1.0, -1.0)
    a, f, f_test = np.zeros(n), np.zeros(n), np.zeros(len(task.y_test))
    done = 0
    for mark in marks(int(n * epochs)):
        while done < mark:
            # The draws depend on nothing: their kernel rows are computed together.
            drawn = draws.integers(0, n, min(64, mark - done))
            rows, rows_test = (rbf(task, drawn, x) for x in (task.x, task.x_test))
            for i, k, k_test in zip(drawn, rows, rows_test, strict=True):
                step = y[i] * min(1.0, max(0.0, a[i] + 1.0 - y[i] * f[i])) - y[i] * a[i]
                a[i] += y[i] * step
                f += step * k
                f_test += step * k_test
            done += len(drawn)
        found[0].append(float(n) * done)
        found[1].append(100.0 * float(np.mean((f_test > 0.0) != task.y_test)))
    return found


def rbf(task: Task, drawn: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the kernel values of some training rows with the rows x."""
    own = task.x[drawn]
    squares = (own * own).sum(1)[:, None] + (x * x).sum(1)[None] - 2.0 * own @ x.T
    return np.exp(-task.kernel.gamma * np.maximum(squares, 0.0))


def smo(task: Task, epochs: float) -> Curve:
    """Return the curve of LIBSVM, from the start for each number of iterations."""
    from sklearn.svm import SVC

    n, found = len(task.y), ([], [])
    for mark in marks(int(n * epochs))[3:]:
        svc = SVC(C=1.0, gamma=task.kernel.gamma, max_iter=mark, cache_size=500)
        svc.fit(task.x, task.y)
        found[0].append(2.0 * n * min(mark, int(svc.n_iter_[0])))
        found[1].append(100.0 * float(np.mean(svc.predict(task.x_test) != task.y_test)))
        if svc.n_iter_[0] < mark:
            break
    return found


def fourier(task: Task, epochs: float, seed: int) -> Curve:
    """Return the curve of random features: of k pairs, each takes n inner products."""
    n, found = len(task.y), ([], [])
    for pairs in [2**i for i in range(3, 12) if 2**i <= n * epochs]:
        features = RandomFourierFeatures(task.kernel.gamma, 2 * pairs, seed)
        model = SVMSGDClassifier(l2=1.0 / n)
        z = features.transform_many(task.x)
        for _ in range(5):
            model.learn_many(z, task.y)
        found[0].append(float(n) * pairs)
        found[1].append(error(model, task._replace(x_test=features.transform_many(task.x_test))))
    return found


def mean(curves: list[Curve]) -> Curve:
    """Return the mean of the curves of several seeds."""
    return tuple(np.mean(values, axis=0).tolist() for values in zip(*curves, strict=True))


def main() -> None:
    options = replication.options(__doc__, limit=None, names=("adult", "mnist"), libsvm="slow")
    header, rows = ["data", "method", "kernel evaluations: test error in %"], []
    for name in options.names:
        task, seeds = load(options, name), range(options.runs)
        l2 = 1.0 / len(task.y)
        pegasos = KernelPegasosClassifier(task.kernel, l2=l2, averaged=False)
        perceptron = KernelPerceptronClassifier(task.kernel, averaged=False)
        curves = {
            "SBP": mean([sbp(task, 1.0, s) for s in seeds]),
            "Pegasos": mean([online(pegasos.clone(), task, 1.0, s) for s in seeds]),
            "SDCA": mean([sdca(task, 1.0, s) for s in seeds]),
            "perceptron": mean([online(perceptron.clone(), task, 3.0, s) for s in seeds]),
        }
        if options.libsvm:
            curves["SMO"] = smo(task, 1.0)
        for figure in (2, 3):
            if figure == 3:
                fourier_curve = mean([fourier(task, 1.0, s) for s in seeds])
                curves = {"SBP": curves["SBP"], "random features": fourier_curve}
            path = options.out / f"sbp_figure_{figure}_{name}.png"
            replication.plot(path, curves, "kernel evaluations", "test error in %", "x", True)
            for way, curve in curves.items():
                text = ", ".join(f"{k:.1e}: {e:.2f}" for k, e in zip(*curve, strict=True))
                rows.append([f"{name}, figure {figure}", way, text])
    replication.table(options.out / "sbp_figures.md", header, rows)


if __name__ == "__main__":
    main()
