"""Processes that are forked while other threads learn."""

import os

import pytest

from tests.safety.programs import run
from tests.slow import slow_but

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

LEARNING = """
import os, signal, sys, threading, time
import numpy as np
import streamsvm
from streamsvm.errors import ForkedModelError

model = getattr(streamsvm, sys.argv[1])()
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 20))
y = (X[:, 0] > 0).astype(int)
event = dict(enumerate(X[0].tolist()))
model.learn_many(X, y)
for call in (model.predict_one, model.decision_function_one):
    call(event)
model.learn_one(event, 1)
stop = threading.Event()

def learn():
    while not stop.is_set():
        model.learn_many(X[:500], y[:500])

thread = threading.Thread(target=learn, daemon=True)
thread.start()
time.sleep(0.2)
for i in range(4):
    child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            model.predict_one(event)
            model.learn_one(event, 1)
            os._exit(0)
        except ForkedModelError as error:
            os._exit(0 if "another thread was using" in str(error) else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, os.waitstatus_to_exitcode(status)
# The parent goes on.
n = model.n_examples
time.sleep(0.5)
assert model.n_examples > n
stop.set()
thread.join()
"""


@pytest.mark.parametrize(
    "name", slow_but(["SVMSGDClassifier", "LASVMClassifier"], "LASVMClassifier")
)
def test_children_neither_hang_nor_crash(name):
    run(LEARNING, name)


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
    run(HELD)
