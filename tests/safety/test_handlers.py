"""Signal handlers, and methods of the user's objects, that learn while a model learns."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from streamsvm import SGDQNClassifier, StandardScaler, SVMSGDClassifier
from streamsvm.errors import ModelBusyError
from streamsvm.learners.bases.linear.rate_search import RateSearchRows
from streamsvm.preprocessing import standard_scaler
from tests.safety.programs import run
from tests.slow import slow_but

FIRST_ROWS = """
import random, signal, sys, time
from streamsvm import SVMSGDClassifier
from streamsvm.errors import ModelBusyError

draw = random.Random(int(sys.argv[1]))
events = [{name: draw.gauss(0.0, 1.0) for name in "abc"} for _ in range(201)]
warm = SVMSGDClassifier(sparse=False)
for i in range(1100):
    warm.learn_one(events[i % 200], i % 2)

def handler(number, frame):
    try:
        model.learn_one(events[200], 1)
        learnt[0] += 1
    except ModelBusyError:
        refused[0] += 1
    signal.setitimer(signal.ITIMER_REAL, draw.uniform(5e-5, 1e-3))

signal.signal(signal.SIGALRM, handler)
began, refused, runs = time.monotonic(), [0], 0
while time.monotonic() - began < 3.0:
    model, learnt, n = SVMSGDClassifier(sparse=False), [0], 1100
    signal.setitimer(signal.ITIMER_REAL, draw.uniform(5e-5, 1e-3))
    for i in range(n):
        model.learn_one(events[i % 200], i % 2)
        if i == 700:
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert model.solver.first_rows.n_rows == model.n_examples
            signal.setitimer(signal.ITIMER_REAL, 1e-4)
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert model.n_examples == n + learnt[0], (model.n_examples, n, learnt)
    assert model.solver.first_rows is None
    runs += 1
# A pending call of the handler may have set the timer again.
signal.signal(signal.SIGALRM, signal.SIG_IGN)
assert refused[0] > 10 and runs > 10, (refused, runs)
"""


@pytest.mark.parametrize("seed", slow_but([0, 1], 0))
def test_a_handler_that_learns_while_first_rows_are_kept(seed):
    run(FIRST_ROWS, seed)


STEPS = [
    (SVMSGDClassifier, "learn_rows"), (SVMSGDClassifier, "search_rate"),
    (SVMSGDClassifier, "after_event"), (RateSearchRows, "add"),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "step"), STEPS)
def test_a_linear_learner_refuses_to_learn_in_the_middle_of_learning(monkeypatch, owner, step):
    rng = np.random.default_rng(0)
    stream = [dict(zip("abc", row, strict=True)) for row in rng.normal(size=(80, 3)).tolist()]
    model, twin = (SVMSGDClassifier(sparse=False) for _ in range(2))
    original, tried = getattr(owner, step), []

    def interrupted(self, *arguments):
        if self is model or self is model.solver.first_rows:
            tried.append(step)
            for learn in (
                lambda: model.learn_one(stream[0], 2),
                lambda: model.learn_many(np.ones((1, 3)), [True]),
            ):
                with pytest.raises(ModelBusyError, match="this model is learning"):
                    learn()
            # It may be used otherwise.
            model.predict_one(stream[0])
        return original(self, *arguments)

    monkeypatch.setattr(owner, step, interrupted)
    for i, x in enumerate(stream):
        for learner in (model, twin):
            learner.learn_one(x, i % 2, Fraction(0) if i % 5 == 4 else 1.0)
    monkeypatch.undo()
    assert tried and model.n_examples == twin.n_examples == 80
    assert model.solver.first_rows.n_rows == 80 and model.classes == [0, 1]
    assert model.weights == twin.weights and model.rate == twin.rate


class Label:
    """A label whose hash runs a function, once, at the k-th time."""

    def __init__(self, text):
        self.text, self.left, self.doing = text, 0, None

    def __eq__(self, other):
        return isinstance(other, Label) and self.text == other.text

    def __lt__(self, other):
        return self.text < other.text

    def __hash__(self):
        self.left -= 1
        if self.left == 0:
            self.doing()
        return hash(self.text)


@pytest.mark.parametrize("k", range(1, 7))
@pytest.mark.parametrize("cls", [SVMSGDClassifier, SGDQNClassifier])
@pytest.mark.parametrize("names", ["strings", "others"])
def test_a_class_that_comes_while_the_label_is_looked_up(cls, k, names):
    """A label learnt while another one is looked up keeps its number."""
    x, own = {"x": 1.0, "y": -2.0, "z": 0.5}, {"x": -1.0, "y": 2.0, "z": 1.5}
    if names == "others":
        x, own = ({(name, 1): value for name, value in event.items()} for event in (x, own))
    a, b, third = Label("a"), Label("b"), Label("c")
    model, twin = (cls(t0=1.0, class_weight={a: 1.0, b: 2.0}, sparse=False) for _ in range(2))
    for i in range(20):
        for learner in (model, twin):
            learner.learn_one({name: value * i for name, value in x.items()}, (a, b)[i % 2])
            learner.predict_one(x)

    def learn_and_predict(learner):
        learner.learn_one(own, third)
        for _ in range(2):
            learner.predict_one(own)
            learner.learn_one(own, third)

    def do():
        done.append(k)
        try:
            learn_and_predict(model)
        except ModelBusyError:
            refused.append(k)

    done, refused = [], []
    a.left, a.doing = k, do
    model.learn_one(x, a)
    a.left = 0
    if done and not refused:
        learn_and_predict(twin)
    twin.learn_one(x, a)
    assert model.n_examples == twin.n_examples and model.classes == twin.classes
    assert model.decision_function_one(x) == twin.decision_function_one(x)


@pytest.mark.parametrize("step", ["values_of", "learn_event", "is_one_hot"])
def test_a_scaler_refuses_to_learn_in_the_middle_of_learning(monkeypatch, step):
    scaler, twin = StandardScaler(), StandardScaler()
    owner = StandardScaler if step == "is_one_hot" else standard_scaler
    original, tried, armed = getattr(owner, step), [], []

    def interrupted(*arguments):
        if armed:
            armed.clear()
            tried.append(step)
            for learn in (
                lambda: scaler.learn_one({"new": 1.0, "a": 1.0}),
                lambda: scaler.learn_many(pd.DataFrame({"a": [1.0]})),
            ):
                with pytest.raises(ModelBusyError, match="this model is learning"):
                    learn()
            scaler.transform_one({"a": 1.0})
        return original(*arguments)

    monkeypatch.setattr(owner, step, interrupted)
    for i in range(6):
        x = {"a": float(i), f"b{i}": 1.0}
        armed[:] = [i]
        scaler.learn_one(x)
        armed.clear()
        twin.learn_one(x)
    assert len(tried) == 6
    assert scaler.statistics == twin.statistics


def test_a_scaler_that_learns_a_name_while_it_is_looked_up(monkeypatch):
    """The columns of an event are not those from before, when the name was unknown."""
    scaler = StandardScaler()
    scaler.learn_one({"a": 1.0})
    original, armed = StandardScaler._columns_of, [True]

    def interrupted(self, names):
        found = original(self, names)
        if armed:
            armed.clear()
            scaler.learn_one({"a": 1.0, "z": 5.0})
            scaler.transform_one({"a": 1.0})
        return found

    monkeypatch.setattr(StandardScaler, "_columns_of", interrupted)
    scaler.transform_one({"z": 1.0, "a": 2.0})
    for z in (1.0, 2.0):
        scaler.learn_one({"z": z, "a": 2.0})
    assert scaler.statistics["z"][0] == 3
