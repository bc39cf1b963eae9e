"""Processes that are forked while other threads learn."""

import os

import pytest

from tests.programs import python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

HELD = """
import copy, os, pickle, signal, sys, threading
from streamsvm import StandardScaler, SVMSGDClassifier
from streamsvm.errors import ForkedModelError

model, free, scaler = SVMSGDClassifier(t0=1.0, l2=0.01), SVMSGDClassifier(t0=1.0), StandardScaler()
for i in range(6):
    x = {"a": 1.0 + i, "b": 1.0}
    scaler.learn_one(x)
    for m in (model, free):
        m.learn_one(x, i % 2)
saved = copy.copy(model)
held, release = threading.Event(), threading.Event()

def hold():
    with model.lock:
        held.set()
        release.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
expected = free.predict_one(x)
child = os.fork()
if not child:
    signal.alarm(20)
    code = 1
    try:
        uses = [
            lambda: model.predict_one(x), lambda: model.learn_one(x, 1), lambda: model.weights,
            lambda: copy.copy(model), lambda: copy.deepcopy(model), lambda: pickle.dumps(model),
            lambda: model.save("nowhere"),
        ]
        for use in uses:
            try:
                use()
            except ForkedModelError:
                continue
            raise AssertionError("a model was used that another thread was using")
        assert "0.01" in repr(model) and model.clone().l2 == 0.01
        # Others, and a copy, can be used.
        for m in (free, saved):
            for i in range(4):
                m.learn_one(x, i % 2)
            m.predict_one(x)
        scaler.learn_one(x)
        assert len(scaler.transform_one(x)) == 2 and free.n_examples == 10
        code = 0
    finally:
        os._exit(code)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
release.set()
thread.join()
for m in (model, free):
    m.learn_one(x, 1)
    assert m.n_examples == 7 and m.predict_one(x) == expected
"""


def test_a_model_that_another_thread_holds_is_refused_in_the_child():
    python("-c", HELD)
