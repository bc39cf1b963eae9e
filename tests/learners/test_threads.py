"""Threads that compute kernel values: the same models, and what interrupts or forks them."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import (
    KernelPerceptronClassifier,
    LaRankClassifier,
    LASVMClassifier,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.cli.report import report_rows
from streamsvm.models.kernel import kernel_batches, kernel_solver, threads
from streamsvm.models.kernel.kernel_batches import FreshValues
from streamsvm.run.report import RunReport
from tests.learners.test_all_learners import content
from tests.slow import slow_but

RBF = kernels.RBF(gamma=0.5)
SETTINGS = {
    "two classes": (LASVMClassifier, 2, {"C": 5.0}),
    "window": (LASVMClassifier, 2, {"window": 150}),
    "merge": (LASVMClassifier, 2, {"max_support_vectors": 40}),
    "sparse": (LASVMClassifier, 2, {"sparse": True}),
    "three classes": (LASVMClassifier, 3, {}),
    "one or the rest": (LASVMClassifier, 3, {"multiclass": "ovr"}),
    "larank": (LaRankClassifier, 3, {}),
    "tracking": (TrackingSVMClassifier, 2, {}),
    "perceptron": (KernelPerceptronClassifier, 2, {}),
}


@pytest.fixture(autouse=True)
def _threads_for_small_models(monkeypatch):
    monkeypatch.setattr(kernel_batches, "_WORTH", 0)
    monkeypatch.setattr(kernel_batches, "_FEWEST_FEATURES", 0)
    monkeypatch.setattr(kernel_batches, "_PART", 500)
    monkeypatch.setattr(kernel_batches, "_PREDICTED_PART", 20_000)


def new_model(name, n_threads):
    cls, _, parameters = SETTINGS[name]
    model = cls(RBF, seed=1, **parameters)
    # Not by `n_jobs`, which is in files.
    model.model.n_threads = n_threads
    return model


def stream(name, seed, n=700):
    """Return rows, some of them twice, and classes of which some are wrong."""
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(n, 5)) * (rng.random((n, 5)) < 0.7)).astype(np.float32)
    x[n // 2 :: 9] = x[: len(x[n // 2 :: 9])]
    y = (x[:, 0] * x[:, 1] > 0.1).astype(int) + (SETTINGS[name][1] > 2) * (x[:, 2] > 0.7)
    wrong = rng.random(n) < rng.choice([0.0, 0.05, 0.2])
    y[wrong] = rng.permutation(y[wrong])
    return x, y


def learnt(name, n_threads, seed, sizes, ids):
    x, y = stream(name, seed)
    model, start, predicted = new_model(name, n_threads), 0, []
    rows = sp.csr_array(x) if name == "sparse" else x
    for size in [*sizes, len(y)]:
        part = slice(start, start + size)
        numbers = None if ids is None else ids[part]
        predicted += model.predict_then_learn_many(rows[part], y[part], ids=numbers)
        start += len(y[part])
        if start == len(y):
            break
    return model, predicted, model.decision_function_many(rows)


@pytest.mark.parametrize(
    "name", slow_but(SETTINGS, "two classes", "sparse", "three classes", "larank")
)
@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 400), max_size=5),
    has_ids=st.booleans(),
)
def test_the_model_does_not_depend_on_the_number_of_threads(name, seed, sizes, has_ids):
    ids = None
    if has_ids and name in ("two classes", "three classes", "sparse", "larank"):
        ids = np.random.default_rng(seed).integers(1, 500, size=700)
    one = learnt(name, 1, seed, sizes, ids)
    for n_threads in (2, 3, 5):
        some = learnt(name, n_threads, seed, sizes, ids)
        assert content(some[0]) == content(one[0])
        assert some[1] == one[1]
        assert np.array_equal(some[2], one[2])
    if name in ("two classes", "three classes"):
        # Finished, too.
        for model in (one[0], some[0]):
            model.finish()
        assert content(some[0]) == content(one[0])


@pytest.mark.parametrize("name", slow_but(SETTINGS, "two classes", "three classes", "larank"))
def test_rows_are_moved_only_when_nobody_reads_them(name, monkeypatch):
    """The values are read ahead, some of them in vain, where rows stay; budgets replace them."""
    begun, calls = [], []
    begin, learn = FreshValues.begin, kernel_solver.KernelSolver.learn

    def counted(self, start, stop):
        begun.append(start)
        begin(self, start, stop)

    def noted(self, rows, margins, counts, values=None, is_read=False):
        learn(self, rows, margins, counts, values, is_read)
        calls.append((is_read, counts[-1] == len(margins)))

    monkeypatch.setattr(FreshValues, "begin", counted)
    monkeypatch.setattr(kernel_solver.KernelSolver, "learn", noted)
    model = learnt(name, 2, 3, [], None)[0]
    if name in ("merge", "sparse", "tracking"):
        assert not begun and calls
        return
    if name == "window":
        # Rows are moved so often that values are nearly always read in vain.
        assert len(begun) <= 5
        return
    assert len(begun) >= 5 and (True, True) in calls
    if name == "two classes":
        # Removed examples were squeezed out nevertheless.
        assert (True, False) in calls
        assert model.state.info[0].n_dead <= max(16, model.state.info[0].n // 8) + 64


# Interruptions


def test_an_interruption_ends_what_other_threads_read(monkeypatch):
    x, y = stream("two classes", 2)
    model, other = new_model("two classes", 3), new_model("two classes", 1)
    at_work, fill, append = [], FreshValues._fill, kernel_solver.append_result

    def slow(self, *part):
        at_work.append(threading.get_ident())
        time.sleep(0.002)
        fill(self, *part)
        at_work.remove(threading.get_ident())

    def interrupted(counts, *call):
        append(counts, *call)
        if len(counts) > 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FreshValues, "_fill", slow)
        patch.setattr(kernel_solver, "append_result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.learn_many(x, y)
        assert not at_work
    n = model.n_examples
    assert 0 < n < len(y)
    other.learn_many(x[:n], y[:n])
    np.testing.assert_array_equal(
        model.state.alpha[: model.state.info[0].n], other.state.alpha[: other.state.info[0].n]
    )
    for each in (model, other):
        each.learn_many(x[n:], y[n:])
    assert model.decision_function_many(x).tolist() == other.decision_function_many(x).tolist()


# The threads of a process


def test_each_call_is_made_once_and_an_error_is_the_callers():
    made, draws = [], np.random.default_rng(0)

    def call(i):
        time.sleep(0.0002 * draws.random())
        made.append(i)

    threads.make_calls(call, [(i,) for i in range(50)], 4)
    assert sorted(made) == list(range(50))

    def fails(i):
        time.sleep(0.001)
        if threading.current_thread().name == "streamsvm":
            raise ValueError(i)

    with pytest.raises(ValueError, match=r"\d"):
        threads.make_calls(fails, [(i,) for i in range(50)], 4)


def test_the_number_of_threads_is_reported():
    assert LASVMClassifier(n_jobs=3).model.n_threads == 3
    model = new_model("two classes", 2)
    model.n_jobs = 2
    report = RunReport()
    report.take_from(model)
    before = report.n_threads
    model.learn_many(*stream("two classes", 0))
    report.take_from(model)
    assert before in (1, 2) and report.n_threads == 2
    assert any(name == "threads" and text[0] == "2" for name, text in report_rows(report, {}))
    report.take_from(new_model("two classes", 1))
    assert report.n_threads == 1
    assert all(name != "threads" for name, _ in report_rows(report, {}))


def test_after_stop_no_call_is_made():
    made = []
    shared = threads.SharedCalls(
        lambda i: (time.sleep(0.002), made.append(i)), ((i,) for i in range(200)), 3
    )
    shared.begin()
    time.sleep(0.01)
    shared.stop()
    n = len(made)
    assert n < 200
    time.sleep(0.01)
    assert len(made) == n


def test_nobody_waits_for_threads_that_are_busy_elsewhere():
    let_go = threading.Event()
    busy = threads.SharedCalls(lambda: let_go.wait(10.0), [()] * 4, 5)
    busy.begin()
    try:
        made = []
        threads.make_calls(made.append, [(i,) for i in range(8)], 2)
        assert sorted(made) == list(range(8))
    finally:
        let_go.set()
        busy.stop()


def test_two_learners_in_two_threads():
    x, y = stream("two classes", 5)
    models = [new_model("two classes", n) for n in (2, 3)]
    work = [threading.Thread(target=model.learn_many, args=(x, y)) for model in models]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    alone = new_model("two classes", 1)
    alone.learn_many(x, y)
    for model in models:
        assert content(model) == content(alone)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_forked_process_has_threads_of_its_own():
    x, y = stream("two classes", 6)
    model, alone = new_model("two classes", 3), new_model("two classes", 1)
    model.learn_many(x[:300], y[:300])
    alone.learn_many(x, y)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(60)
            model.learn_many(x[300:], y[300:])
            helpers = [t for t in threading.enumerate() if t.name == "streamsvm"]
            code = 0 if content(model) == content(alone) and helpers else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    model.learn_many(x[300:], y[300:])
    assert content(model) == content(alone)


def test_the_interpreter_ends_while_threads_sleep_or_work():
    code = (
        "import time; from streamsvm.models.kernel import threads;"
        "threads.make_calls(time.sleep, [(0.01,)] * 8, 4);"
        "threads.SharedCalls(time.sleep, [(60.0,)] * 8, 4).begin(); print('end')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert ran.stdout == "end\n" and ran.stderr == ""


def test_what_no_thread_can_take_is_not_kept(monkeypatch):
    pool = threads._Pool()
    monkeypatch.setattr(threads, "_pool", pool)

    def start(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    made = []
    threads.make_calls(made.append, [(number,) for number in range(8)], 4)
    assert made == list(range(8)) and pool._tickets.qsize() == 0
