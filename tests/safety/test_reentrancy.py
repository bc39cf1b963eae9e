"""Models that are used by what runs in the middle of their methods, on the same thread."""

import copy
from fractions import Fraction

import numpy as np
import pytest

from streamsvm import (
    AdaptiveSVMClassifier,
    LaRankClassifier,
    LASVMClassifier,
    SGDQNClassifier,
    SVMSGDClassifier,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.errors import ModelBusyError
from streamsvm.features.schema import Schema
from streamsvm.learners.bases.kernel.kernel_solver import KernelSolver
from streamsvm.learners.bases.linear import linear_learner
from streamsvm.solvers.linear import state as linear_state
from tests.safety.programs import run
from tests.slow import compiles, slow_but

SIGNALS = """
import random, signal, sys, time
from fractions import Fraction
import numpy as np
from streamsvm import SVMSGDClassifier
from streamsvm.errors import ModelBusyError

draw = random.Random(int(sys.argv[1]))
model = SVMSGDClassifier(t0=1.0, sparse=False)
names = [f"f{i}" for i in range(1000)]
event = {name: draw.random() for name in names}
for label in range(3):
    model.learn_one(event, label)
classes, learnt = [3], [3]

def handler(number, frame):
    if classes[0] < 150:
        try:
            model.learn_one(event, classes[0])
            classes[0] += 1
            learnt[0] += 1
        except ModelBusyError:
            pass
    signal.setitimer(signal.ITIMER_REAL, draw.uniform(2e-5, 2e-3))

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 1e-3)
began, i = time.monotonic(), 0
while time.monotonic() - began < 6.0 and classes[0] < 150:
    # A weight that is a fraction takes the general path.
    model.learn_one(event, i % 3, Fraction(0) if i % 2 else 1.0)
    model.predict_one(event)
    i += 1
    learnt[0] += 1
# Not by its timer, which a pending call of the handler would set again.
signal.signal(signal.SIGALRM, signal.SIG_IGN)
assert len(model.classes) == model.state.weights.shape[0] > 10
# Later events are learnt, by the arrays that the model has.
before, n = model.state.weights.copy(), model.n_examples
for k in range(100):
    model.learn_one(event, k % 3)
assert model.n_examples == n + 100 and not np.array_equal(before, model.state.weights)
assert model.predict_one(event) in model.classes
"""


@pytest.mark.parametrize("seed", slow_but([0, 1, 2], 0))
def test_a_signal_handler_that_learns(seed):
    run(SIGNALS, seed)


KERNEL_SIGNALS = """
import random, signal, sys, time
from fractions import Fraction
from streamsvm import LASVMClassifier, LaRankClassifier, TrackingSVMClassifier
from streamsvm.errors import ModelBusyError

cls = {"lasvm": LASVMClassifier, "larank": LaRankClassifier, "tracking": TrackingSVMClassifier}
draw = random.Random(0)
model, learnt, refused = cls[sys.argv[1]](), [0], [0]

def event():
    x = {name: draw.gauss(0.0, 1.0) for name in "abcdefgh"}
    return x, x["a"] * x["b"] > 0.0

for _ in range(40):
    model.learn_one(*event())
model.learn_one(*event(), Fraction(0))
learnt[0] = 41

def handler(number, frame):
    try:
        # As few calls as possible between learning and counting: signals come here, too.
        for _ in range(3):
            model.learn_one(*event())
            learnt[0] += 1
    except ModelBusyError:
        refused[0] += 1
    signal.setitimer(signal.ITIMER_REAL, draw.uniform(2e-5, 1e-3))

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 1e-3)
began, i = time.monotonic(), 0
while time.monotonic() - began < 2.0:
    model.learn_one(*event(), Fraction(0) if i % 3 else 1.0)
    i += 1
# Not by its timer, which a pending call of the handler would set again.
signal.signal(signal.SIGALRM, signal.SIG_IGN)
assert refused[0] > 10 and learnt[0] > 60, (refused, learnt)
assert model.n_examples == learnt[0] + i, (model.n_examples, learnt, i)
model.learn_one(*event())
"""


@pytest.mark.parametrize("name", slow_but(["lasvm", "larank", "tracking"], "lasvm"))
def test_a_signal_handler_that_learns_on_a_kernel_learner(name):
    run(KERNEL_SIGNALS, name)


@pytest.mark.parametrize("cls", [LASVMClassifier, TrackingSVMClassifier, LaRankClassifier])
@pytest.mark.parametrize("step", ["diagonal_of", "learn_rows", "learn", "adapt"])
def test_a_kernel_learner_refuses_to_learn_in_the_middle_of_learning(monkeypatch, cls, step):
    stream = [({"a": float(i % 7 - 3), "b": float(i % 5)}, i % 7 > 2) for i in range(64)]
    model, twin = (cls(**({} if cls is LASVMClassifier else {"seed": 0})) for _ in range(2))
    owner = KernelSolver if step == "learn" else cls
    original, tried = getattr(owner, step), []

    def interrupted(self, *arguments):
        if (self is model or self is model.solver) and step in armed:
            armed.clear()
            tried.append(step)
            for learn in (
                lambda: model.learn_one({"new": 1.0}, True),
                lambda: model.learn_many(np.ones((1, 1)), [True]),
            ):
                with pytest.raises(ModelBusyError, match="this model is learning"):
                    learn()
            # A copy that was made now is not in the middle of anything.
            copy.deepcopy(model).learn_one({"a": 1.0}, True)
        return original(self, *arguments)

    monkeypatch.setattr(owner, step, interrupted)
    for i, (x, y) in enumerate(stream):
        # By the general path (of a weight that is a fraction) and by that of events.
        armed = {step} if i > 20 else set()
        for learner in (model, twin):
            learner.learn_one(x, y, Fraction(0) if i % 4 == 2 else 1.0)
    assert len(tried) > 1 or step == "adapt"
    assert tried and model.n_examples == twin.n_examples == 64
    assert model.feature_names == ["a", "b"]
    for x, _ in stream[:7]:
        assert model.decision_function_one(x) == twin.decision_function_one(x)


@pytest.mark.parametrize("cls", [SVMSGDClassifier, LASVMClassifier])
def test_an_event_is_learnt_though_a_handler_learns_each_time_it_is_read(monkeypatch, cls):
    """As signals that come faster than a wide event is read; a busy machine is enough for that."""
    model, own, found, inside = cls(), Schema.wider_row, [], []
    for i in range(30):
        model.learn_one({"a": float(i % 7 - 3)}, i % 7 > 2)

    def interrupted(self, event):
        if not inside:
            inside.append(True)
            try:
                model.learn_one({"a": 2.0}, True)
                found.append("learnt")
            except ModelBusyError:
                found.append("refused")
            inside.clear()
        return own(self, event)

    monkeypatch.setattr(Schema, "wider_row", interrupted)
    model.learn_one({"a": 1.0}, False, Fraction(1))
    assert found[-1] == "refused" and set(found[:-1]) == {"learnt"}
    assert model.n_examples == 30 + len(found)
    model.learn_one({"a": 2.0}, True)


@pytest.mark.parametrize("cls", [SVMSGDClassifier, SGDQNClassifier])
@pytest.mark.parametrize("t0", [None, 10.0])
@pytest.mark.parametrize(
    ("module", "place"), [(linear_state, "new_state"), (linear_learner, "spread_to")]
)
def test_an_interruption_while_a_third_class_comes(monkeypatch, cls, t0, module, place):
    """Labels, outputs and first rows are the old ones or the new ones."""
    events = [({"a": float(i % 7) - 3.0, "b": 1.0}, "pq"[i % 7 > 3]) for i in range(40)]
    models = [cls(t0=t0) for _ in range(2)]
    for x, y in events:
        for model in models:
            model.learn_one(x, y)
    x = {"a": 1.0, "b": 2.0}

    def interrupted(*arguments):
        raise KeyboardInterrupt

    before = models[0].decision_function_one(x), models[0].weights, models[0].intercept
    with monkeypatch.context() as patch:
        patch.setattr(module, place, interrupted)
        with pytest.raises(KeyboardInterrupt):
            models[0].learn_one(x, "third")
    assert (models[0].decision_function_one(x), models[0].weights, models[0].intercept) == before
    assert models[0].classes == ["p", "q"]
    for model in models:
        model.learn_one(x, "third")
        for event, y in events:
            model.learn_one(event, y)
    assert models[0].weights == models[1].weights
    assert models[0].predict_proba_one(x) == models[1].predict_proba_one(x)


class InterruptedBuffer:
    """Runs a function, once, when the values of an event have just been written."""

    def __init__(self, path, function):
        self.path, self.function, self.view = path, function, path._values_view
        path._values_view = self

    def __setitem__(self, key, values):
        self.path._values_view = self.view
        self.view[: len(values)] = values
        self.function()


@pytest.mark.parametrize(
    ("cls", "sparse"),
    [
        (LASVMClassifier, False),
        (LASVMClassifier, True),
        (TrackingSVMClassifier, False),
        (LaRankClassifier, False),
        pytest.param(TrackingSVMClassifier, True, marks=compiles("TrackingSVMClassifier sparse")),
        pytest.param(LaRankClassifier, True, marks=compiles("LaRankClassifier sparse")),
    ],
)
@pytest.mark.parametrize("what", ["learn", "predict", "learn a new feature", "learn a batch"])
def test_an_event_that_a_handler_overwrites_is_read_again(cls, sparse, what):
    other = {"a": -2.0, "b": 4.0}
    doing = {
        "learn": lambda model: model.learn_one(other, False),
        "predict": lambda model: model.predict_one(other),
        "learn a new feature": lambda model: model.learn_one({**other, "c": 1.0}, False),
        "learn a batch": lambda model: model.learn_one(other, False, 0.0),
    }[what]
    kernel = kernels.RBF(gamma=0.3)
    model, twin = (
        cls(kernel, sparse=sparse, **({} if cls is LASVMClassifier else {"seed": 0}))
        for _ in range(2)
    )
    for i in range(30):
        for learner in (model, twin):
            learner.learn_one({"a": float(i % 7 - 3), "b": float(i % 5)}, i % 7 > 2)
    x = {"a": 1.5, "b": -1.0}
    model.predict_one(x)
    InterruptedBuffer(model.event_path, lambda: doing(model))
    doing(twin)
    # The second time makes a path to the state of now.
    assert model.predict_one(x) == model.predict_one(x) == twin.predict_one(x)

    def interrupt():
        if what == "predict":
            doing(model)
            return
        with pytest.raises(ModelBusyError, match="this model is learning"):
            doing(model)

    # The event to be learnt can be overwritten by one that is predicted, no other may be learnt.
    InterruptedBuffer(model.event_path, interrupt)
    model.learn_one(x, True)
    twin.learn_one(x, True)
    assert model.n_examples == twin.n_examples
    for x in ({"a": 1.5, "b": -1.0}, other):
        assert model.decision_function_one(x) == twin.decision_function_one(x)


class ActingName:
    """A feature's name that, while it is armed, acts each time it is compared or hashed."""

    def __init__(self, name):
        self.name, self.action = name, None

    def __hash__(self):
        self.act()
        return hash(self.name)

    def __eq__(self, other):
        self.act()
        return self.name == getattr(other, "name", other)

    def act(self):
        action, self.action = self.action, None
        if action is not None:
            action()


ACTIONS = {
    "learn": lambda model: model.learn_one({"a": 1.0, "new": 2.0}, 1),
    "learn a third class": lambda model: model.learn_one({"a": 1.0}, "third"),
    "learn a batch": lambda model: model.learn_many(np.ones((70, 1)), [0, 1] * 35),
    "finish": lambda model: model.finish(),
    "copy": lambda model: copy.deepcopy(model).learn_one({"a": 1.0}, 0),
}


@pytest.mark.parametrize("what", ACTIONS)
def test_models_that_learn_together_while_an_event_is_read(what):
    model, name = AdaptiveSVMClassifier(window=60, seed=1), ActingName("a")
    for i in range(130):
        x, y = {name: float(i % 7 - 3), "b": float(i % 5)}, i % 7 > 2
        before = model.n_examples
        if i % 9 == 8:
            name.action = lambda: ACTIONS[what](model)
        model.learn_one(x, int(y))
        assert model.n_examples - before >= 1
        # Each example was learnt by the model in use, and by no other object in its place.
        assert model.in_use.n_examples in (model.n_examples, model.recent.n_examples)
        assert model.predict_one(x) in model.classes
    assert all(member.lock is model.lock for member in model.models)
    for act in (
        lambda: model.in_use.learn_one({"a": 1.0}, 1),
        lambda: model.in_use.finish(),
        lambda: model.in_use.learn_many(np.ones((1, 1)), ["new"]),
    ):
        with pytest.raises(ModelBusyError):
            act()


@pytest.mark.parametrize("step", ["after_event", "_after_examples", "diagonal_of", "add_class"])
def test_models_that_learn_together_refuse_to_learn_in_the_middle(monkeypatch, step):
    model, original, refused = AdaptiveSVMClassifier(seed=1), None, []
    original = getattr(AdaptiveSVMClassifier, step)

    def interrupted(self, *arguments):
        found = original(self, *arguments)
        for name in ("learn", "learn a third class", "learn a batch", "finish"):
            with pytest.raises(ModelBusyError):
                ACTIONS[name](model)
        model.predict_one({"a": 0.0, "b": 9.0})
        refused.append(step)
        return found

    monkeypatch.setattr(AdaptiveSVMClassifier, step, interrupted)
    twin = AdaptiveSVMClassifier(seed=1)
    for i in range(70):
        x, y = {"a": float(i % 7 - 3), "b": float(i % 5)}, i % 7 > 2
        model.learn_one(x, y, 0.5 + i % 2)
    monkeypatch.undo()
    for i in range(70):
        x, y = {"a": float(i % 7 - 3), "b": float(i % 5)}, i % 7 > 2
        twin.learn_one(x, y, 0.5 + i % 2)
    assert refused and model.n_examples == 70
    assert model.decision_function_one(x) == twin.decision_function_one(x)
