"""Copies, pickles and files of wrappers that are made while another thread learns."""

import copy
import pickle
import threading

import pytest

import streamsvm
from streamsvm import ConformalSets, StandardScaler, SVMSGDClassifier, TrackingMonitor
from tests.wrappers import WRAPPERS

EVENTS = [({"a": float(i % 7), "b": float(i % 3)}, i % 7 > 3) for i in range(400)]


def scaled():
    return StandardScaler() | SVMSGDClassifier(seed=1)


MODELS = {
    **{name: lambda known=known: known.around(scaled()) for name, known in WRAPPERS.items()},
    "sets by class": lambda: ConformalSets(SVMSGDClassifier(seed=1), by_class=True),
    "monitor": lambda: TrackingMonitor(SVMSGDClassifier(seed=1), every=50),
    "monitor of sets": lambda: TrackingMonitor(ConformalSets(scaled()), every=50),
}
USES = {
    "copied": lambda model, path: copy.deepcopy(model),
    "pickled": lambda model, path: pickle.loads(pickle.dumps(model)),
    "saved": lambda model, path: streamsvm.save(model, path) or streamsvm.load(path),
    "shown": lambda model, path: (repr(model), str(model)),
    "measured": lambda model, path: (
        model.get() if isinstance(model, TrackingMonitor) else model._raw_memory_usage
    ),
}


def count_of(model):
    """Return how many events a wrapper counts, and how many its learner has learnt."""
    model = model.model if isinstance(model, TrackingMonitor) else model
    (known,) = (known for known in WRAPPERS.values() if known.cls is type(model))
    inner = getattr(model, "classifier", None) or getattr(model, "a", None) or model.model
    learner = getattr(inner, "steps", {"": inner})
    return known.n_counted(model), list(learner.values())[-1].n_examples


class Slow(SVMSGDClassifier):
    """A learner that waits within an event until it may go on."""

    has_begun, may_go_on = threading.Event(), threading.Event()

    def learn_one(self, x, y, w=1.0):
        super().learn_one(x, y, w)
        self.has_begun.set()
        assert self.may_go_on.wait(60)


@pytest.mark.parametrize("use", ["copied", "pickled"])
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_copy_waits_until_the_event_is_counted_that_was_learnt(name, use, tmp_path):
    Slow.has_begun.clear()
    Slow.may_go_on.clear()
    model = WRAPPERS[name].around(Slow())
    found = []
    learning = threading.Thread(target=model.learn_one, args=EVENTS[0])
    copying = threading.Thread(target=lambda: found.append(USES[use](model, tmp_path / "m")))
    learning.start()
    assert Slow.has_begun.wait(60)
    copying.start()
    copying.join(0.1)
    assert not found
    Slow.may_go_on.set()
    learning.join(60)
    copying.join(60)
    n, n_learnt = count_of(found[0])
    assert n == n_learnt == 1


@pytest.mark.parametrize("name", MODELS)
def test_a_wrapper_can_be_used_while_another_thread_learns(name, tmp_path):
    model, errors = MODELS[name](), []

    def learn():
        try:
            for x, y in EVENTS:
                getattr(model, "predict_set_one", model.predict_one)(x)
                model.learn_one(x, y)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=learn)
    thread.start()
    is_over = False
    while not is_over:
        is_over = not thread.is_alive()
        for how, use in USES.items():
            if how != "saved" or not name.startswith("monitor"):
                found = use(model, tmp_path / "m.svm")
            if how in ("copied", "pickled", "saved") and name != "monitor":
                n, n_learnt = count_of(found)
                assert n == n_learnt, how
    assert not errors
