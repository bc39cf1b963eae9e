"""Asked from several threads while one learns."""

import sys
import threading

import numpy as np
import pytest
from river import compose, naive_bayes

from connectors import MemorySource
from streamsvm import (
    IncrementalSVMClassifier,
    LASVMClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
    load,
)
from streamsvm.errors import ParameterError
from streamsvm.model_files import container as model_file
from streamsvm.run.runner import Run
from streamsvm.run.serving import Serving
from streamsvm.solvers.linear.state import T

N = 6000
X = np.random.default_rng(0).normal(size=(N, 3))
EVENTS = [({"a": a, "b": b, "c": c}, bool(a * b + 0.3 * c > 0)) for a, b, c in X.tolist()]
ASKED = {"a": 0.4, "b": -0.3, "c": 0.1}
MAKERS = {
    "lasvm": lambda: LASVMClassifier(max_support_vectors=100),
    "tracking": lambda: TrackingSVMClassifier(K=3, window=200, seed=1),
    "sparse": lambda: LASVMClassifier(sparse=True),
}


@pytest.fixture(autouse=True)
def many_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def hammered(learn, ask, n_threads=3):
    """Call `ask` in threads until `learn` is over; return what it gave, and errors."""
    found, errors, over = [], [], threading.Event()

    def work():
        own = set()
        try:
            while not over.is_set():
                own.add(ask())
        except BaseException as error:
            errors.append(error)
        found.append(own)

    threads = [threading.Thread(target=work) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    try:
        learn()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not errors, errors
    return set().union(*found)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("batch", "n"), [(1, 600), (50, N)])
def test_a_learner_is_asked_only_between_events(name, batch, n):
    """Every margin seen is one of those that the model has after whole events, to the last bit."""
    alone, model = MAKERS[name](), MAKERS[name]()

    def steps(learner):
        for start in range(0, n, batch):
            if batch == 1:
                learner.learn_one(*EVENTS[start])
            else:
                part = slice(start, start + batch)
                learner.learn_many(X[part], [y for _, y in EVENTS[part]])
            yield learner.decision_function_one(asked)

    asked = ASKED if batch == 1 else dict(enumerate(ASKED.values()))
    allowed = {0.0, *steps(alone)}
    seen = hammered(lambda: list(steps(model)), lambda: model.decision_function_one(asked))
    assert seen <= allowed
    assert len(seen) > 1
    assert model.decision_function_one(asked) == alone.decision_function_one(asked)
    ours, others = model.support_vectors(), alone.support_vectors()
    np.testing.assert_array_equal(ours.coefficients, others.coefficients)


def first(probabilities):
    """Return the first of the probabilities; 0 if there is no label so far."""
    return next(iter(probabilities.values()), 0.0)


def test_serving_gives_whole_pipelines_and_never_waits():
    alone, model = (StandardScaler() | LASVMClassifier() for _ in range(2))
    margins = {0.0}
    for x, y in EVENTS[:300]:
        alone.learn_one(x, y)
        margins.add(first(alone.predict_proba_one(ASKED)))
    serving = Serving(model, seconds=0.0)
    renewed = []

    def learn():
        for event in EVENTS[:300]:
            model.learn_one(*event)
            renewed.append(serving.refresh())

    seen = hammered(learn, lambda: first(serving.predict_proba_one(ASKED)))
    assert seen <= margins | {0.5}
    assert all(renewed) and len(seen) > 2
    with model["LASVMClassifier"].lock:
        # The learner is busy, for as long as it takes.
        assert hammered(lambda: None, lambda: serving.predict_one(ASKED), 1) <= {True, False}


def test_serving_a_run_a_monitor_and_a_classifier_of_rivers():
    for model in (TrackingMonitor(LASVMClassifier()), naive_bayes.GaussianNB()):
        serving = Serving(model, seconds=0.0)
        Run(MemorySource(EVENTS[:300]), model, on_progress=serving.refresh).execute()
        serving.refresh()
        assert serving.predict_one(ASKED) == getattr(model, "model", model).predict_one(ASKED)
        assert serving.age < 60
    assert serving.model is not model


def test_copies_are_renewed_no_sooner_than_asked():
    model = LASVMClassifier()
    serving = Serving(model, seconds=3600.0)
    for event in EVENTS[:50]:
        model.learn_one(*event)
        assert not serving.refresh()
    assert serving.model.n_examples == 0
    assert list(serving.predict_many(np.zeros((2, 3)))) == [None, None]
    assert serving.predict_proba_many(np.zeros((2, 3))) == {}
    with pytest.raises(ParameterError, match="seconds"):
        Serving(model, seconds=-1)
    assert not Serving(model, seconds=np.inf).refresh()


@pytest.mark.parametrize("cls", [SVMSGDClassifier, LASVMClassifier])
def test_a_pipeline_is_saved_as_of_one_moment(cls, tmp_path):
    model = StandardScaler() | cls()
    events = EVENTS * 5 if cls is SVMSGDClassifier else EVENTS[:1500]

    def learn(part=slice(10, None)):
        for event in events[part]:
            model.learn_one(*event)

    def ask():
        path = tmp_path / f"model.{threading.get_ident()}"
        path.write_bytes(model_file.encoded(model))
        learner = load(path)[cls.__name__]
        state = learner.state
        if cls is SVMSGDClassifier:
            kept = learner.model.first_rows
            rows = 0 if kept is None else kept.n_rows
            return learner.n_examples, int(state.info[0, T]), rows or learner.n_examples
        return learner.n_examples, int(state.store.entered.max()) <= learner.n_examples

    learn(slice(10))
    seen = hammered(learn, ask, 1)
    assert len(seen) > 1
    for n, *others in seen:
        assert set(others) == ({n} if cls is SVMSGDClassifier else {True})


def test_pipelines_of_the_same_steps_in_another_order_are_saved_at_once():
    a, b = StandardScaler(), StandardScaler()
    for scaler in (a, b):
        scaler.learn_one({f"f{j}": 1.0 for j in range(300)})
    steps = [(("a", a), ("b", b)), (("b", b), ("a", a)), (("a", a), ("again", a))]
    models = [compose.Pipeline(*own) for own in steps]

    def save(model):
        for _ in range(200):
            model_file.encoded(model)

    threads = [threading.Thread(target=save, args=(model,), daemon=True) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_what_is_forgotten_is_in_no_later_prediction():
    model = StandardScaler() | IncrementalSVMClassifier()
    for event in EVENTS[:200]:
        model.learn_one(*event)
    # The copy is not due: it is renewed all the same.
    serving = Serving(TrackingMonitor(model), seconds=1e6)
    before = serving.model
    found = serving.unlearn([5, 7, 1000])
    assert (sorted(found.removed), list(found.not_kept)) == ([5, 7], [1000])
    assert serving.model is not before
    assert serving.predict_proba_one(ASKED) == model.predict_proba_one(ASKED)
    assert not np.isin([5, 7], serving.model["IncrementalSVMClassifier"].kept_numbers()).any()
    with pytest.raises(ParameterError, match="cannot forget"):
        Serving(naive_bayes.GaussianNB()).unlearn([1])
    # A copy that another thread has begun comes before it, or is not served.
    busy = threading.Thread(target=lambda: [serving.refresh() for _ in range(3)])
    serving.seconds = 0.0
    busy.start()
    serving.unlearn([9])
    busy.join()
    assert 9 not in serving.model["IncrementalSVMClassifier"].kept_numbers()
