"""What is measured: each function trains on a workload and returns its figures.

``seconds`` is what systems are compared by: training alone for batches, one event for streams.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.workloads import AbsentError, Workload

Figures = dict[str, Any]
System = Callable[[Workload], Figures]


def _error(predicted: Any, truth: np.ndarray) -> float:
    return 100.0 * float(np.mean(np.asarray(predicted) != truth))


def _timed(train: Callable[[], Any]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    train()
    return time.perf_counter() - wall, time.process_time() - cpu


def lasvm(epochs: int = 1, finish: bool = True, **parameters: Any) -> System:
    """LASVM: so many epochs, then finishing, if asked for."""

    def run(work: Workload) -> Figures:
        from streamsvm import LASVMClassifier, kernels

        def new() -> Any:
            return LASVMClassifier(kernels.RBF(gamma=work.gamma), C=work.C, **parameters)

        # Compiled code is loaded before the clock runs.
        warm = new()
        warm.learn_many(work.x[:300], work.y[:300])
        warm.finish()
        warm.predict_many(work.x_test[:70])
        model = new()
        ids = np.arange(1, len(work.y) + 1) if epochs > 1 else None

        def train() -> None:
            for _ in range(epochs):
                model.learn_many(work.x, work.y, ids=ids)
            if finish:
                model.finish()

        seconds, cpu = _timed(train)
        counters = model.counters
        rows = sum(counters[f"cached_rows_{how}"] for how in ("hit", "missed", "extended"))
        return {
            "seconds": seconds,
            "cpu_seconds": cpu,
            "error": _error(model.predict_many(work.x_test), work.y_test),
            "n_support_vectors": model.n_support_vectors,
            "kernel_values": counters["kernel_values"],
            "cached_rows_missed": counters["cached_rows_missed"] / max(1, rows),
            "memory_mb": model.memory_usage / 1e6,
            "bytes_a_support_vector": model.memory_parts["support_vectors"]
            / max(1, model.n_support_vectors),
        }

    run.learner = "LASVMClassifier"  # type: ignore[attr-defined]
    return run


def larank(finish: bool = False, **parameters: Any) -> System:
    """LaRank: one epoch, and finishing if asked for."""

    def run(work: Workload) -> Figures:
        from streamsvm import LaRankClassifier, kernels

        def new() -> Any:
            return LaRankClassifier(kernels.RBF(gamma=work.gamma), C=work.C, seed=1, **parameters)

        warm = new()
        warm.learn_many(work.x[:300], work.y[:300])
        warm.finish()
        warm.predict_many(work.x_test[:70])
        model = new()

        def train() -> None:
            model.learn_many(work.x, work.y)
            if finish:
                model.finish()

        seconds, cpu = _timed(train)
        counters = model.counters
        return {
            "seconds": seconds,
            "cpu_seconds": cpu,
            "error": _error(model.predict_many(work.x_test), work.y_test),
            "n_support_vectors": model.n_support_vectors,
            "n_support_patterns": model.n_support_patterns,
            "kernel_values": counters["kernel_values"],
            "argmax": counters["argmax_new"] + counters["argmax_old"],
            "optimize_steps": counters["optimize_steps"],
            "dual": model.dual,
            "memory_mb": model.memory_usage / 1e6,
        }

    run.learner = "LaRankClassifier"  # type: ignore[attr-defined]
    return run


def _fitted(model: Any, work: Workload) -> Figures:
    seconds, cpu = _timed(lambda: model.fit(work.x, work.y))
    figures = {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "error": _error(model.predict(work.x_test), work.y_test),
    }
    support = getattr(model, "n_support_", None)
    return figures | ({} if support is None else {"n_support_vectors": int(np.sum(support))})


def _as_double(work: Workload) -> Workload:
    """LIBSVM takes doubles: converting is not its training."""
    return work._replace(x=work.x.astype(float), x_test=work.x_test.astype(float))


def svc(work: Workload) -> Figures:
    """LIBSVM, through scikit-learn."""
    from sklearn.svm import SVC

    return _fitted(SVC(C=work.C, gamma=work.gamma, cache_size=500), _as_double(work))


def libsvm(work: Workload) -> Figures:
    """LIBSVM itself, from sparse rows as its own program has them, with SVC's size of cache."""
    try:
        from libsvm import svm, svmutil
    except ImportError as error:
        raise AbsentError("pip install libsvm-official") from error
    from scipy import sparse

    names, codes = np.unique(work.y, return_inverse=True)
    problem = svm.svm_problem(codes.astype(float), sparse.csr_matrix(work.x))
    options = svm.svm_parameter(f"-q -c {work.C} -g {work.gamma} -m 500")
    trained: list[Any] = []
    seconds, cpu = _timed(lambda: trained.append(svmutil.svm_train(problem, options)))
    rows = sparse.csr_matrix(work.x_test)
    found, *_ = svmutil.svm_predict([], rows, trained[0], "-q")
    return {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "error": _error(names[np.array(found, int)], work.y_test),
        "n_support_vectors": trained[0].get_nr_sv(),
    }


def svc_intelex(work: Workload) -> Figures:
    """Intel's extension of scikit-learn, with as many threads as the process has cores."""
    try:
        from sklearnex.svm import SVC
    except ImportError as error:
        raise AbsentError("pip install scikit-learn-intelex") from error
    from threadpoolctl import threadpool_limits

    with threadpool_limits(len(os.sched_getaffinity(0))):
        return _fitted(SVC(C=work.C, gamma=work.gamma, cache_size=500), _as_double(work))


def linear_svc(work: Workload) -> Figures:
    """LIBLINEAR, through scikit-learn: another, easier problem, for orientation."""
    from sklearn.svm import LinearSVC

    return _fitted(LinearSVC(random_state=0), _as_double(work))


def sgd(work: Workload) -> Figures:
    """Scikit-learn's stochastic gradient descent on the hinge loss: linear."""
    from sklearn.linear_model import SGDClassifier

    return _fitted(SGDClassifier(random_state=0), _as_double(work))


def vowpal_wabbit(work: Workload) -> Figures:
    """Vowpal Wabbit's LASVM (``--ksvm``), one pass, with one reprocess step."""
    try:
        import vowpalwabbit
    except ImportError as error:
        raise AbsentError("pip install vowpalwabbit") from error
    workspace = vowpalwabbit.Workspace(
        # lambda bounds each coefficient by 1 / lambda: it is 1 / C, whatever the number of rows
        f"--ksvm --kernel rbf --bandwidth {work.gamma} --reprocess 1 --quiet --l2 {1.0 / work.C}"
    )

    def listed(x: np.ndarray, label: str = "") -> list[str]:
        return [
            label + "| " + " ".join(f"{c}:{row[c]:g}" for c in np.flatnonzero(row)) for row in x
        ]

    signs = np.where(work.y, "1 ", "-1 ")
    rows = [sign + row for sign, row in zip(signs, listed(work.x), strict=True)]

    def train() -> None:
        for row in rows:
            workspace.learn(row)

    seconds, cpu = _timed(train)
    predicted = [workspace.predict(row) > 0 for row in listed(work.x_test)]
    return {"seconds": seconds, "cpu_seconds": cpu, "error": _error(predicted, work.y_test)}


# Prediction: seconds a row and support vector


def _predicting(predict: Callable[[Any], Any], work: Workload, n: int) -> Figures:
    predict(work.x_test[:100])
    times = [_timed(lambda: predict(work.x_test)) for _ in range(3)]
    seconds, cpu = min(times)
    rows = len(work.y_test)
    return {
        "seconds": seconds / rows / n,
        "cpu_seconds": cpu / rows / n,
        "error": _error(predict(work.x_test), work.y_test),
        "n_support_vectors": n,
        "rows_a_second": rows / seconds,
    }


def lasvm_predict(work: Workload) -> Figures:
    """Predict a batch with a trained LASVM."""
    from streamsvm import LASVMClassifier, kernels

    model = LASVMClassifier(kernels.RBF(gamma=work.gamma), C=work.C)
    model.learn_many(work.x, work.y)
    model.finish()
    return _predicting(model.predict_many, work, model.n_support_vectors)


def svc_predict(work: Workload) -> Figures:
    """Predict a batch with a trained SVC."""
    from sklearn.svm import SVC

    work = _as_double(work)
    model = SVC(C=work.C, gamma=work.gamma, cache_size=500).fit(work.x, work.y)
    return _predicting(model.predict, work, int(np.sum(model.n_support_)))
