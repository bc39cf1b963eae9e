"""When the fast paths of events are open, what they hold, and what closes them."""

import contextlib
import copy
import gc
import pickle
import sys
import threading
import weakref
from collections import Counter, defaultdict
from decimal import Decimal
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

from streamsvm import LaRankClassifier, SGDQNClassifier, SVMSGDClassifier
from streamsvm.errors import FeatureError
from streamsvm.learners.bases.linear import linear_native
from streamsvm.native_events.event_reader import LONGEST
from streamsvm.solvers.linear import state as linear_state
from streamsvm.solvers.linear.state import T


def test_names_of_the_last_event_are_held_and_let_go():
    model = SVMSGDClassifier(t0=10.0, sparse=True)
    for i in range(4):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    name = "".join(["of", " one ", "event"])
    before = sys.getrefcount(name)
    assert model.fast_path.predict({name: 1.0, "a": 1.0}) is not None
    assert sys.getrefcount(name) == before + 1
    assert model.fast_path.predict({"a": 1.0, "b": 1.0}) is not None
    assert sys.getrefcount(name) == before
    assert model.fast_path.predict({name: 1.0}) is not None
    del model
    gc.collect()
    assert sys.getrefcount(name) == before


@pytest.mark.parametrize("params", [{"sparse": False}, {"sparse": True}, {"hashing": 64}], ids=str)
@pytest.mark.parametrize("cls", [SVMSGDClassifier, SGDQNClassifier])
def test_events_of_known_names_take_the_fast_path(cls, params):
    model = cls(t0=10.0, **params)
    names = [f"name {i}" for i in range(20)]
    for i in range(4):
        model.learn_one({name: 1.0 + i for name in names}, bool(i % 2))
    assert model.fast_path.predict({}) is not None
    path = model.fast_path
    for x in (
        dict.fromkeys(names, 1.0),
        dict.fromkeys(reversed(names), True),
        Counter(["name 1", "name 3"]),
        defaultdict(float, {"name 7": np.float32(0.5)}),
        # Equal names that are other objects.
        {"".join(list(name)): 2 for name in names},
    ):
        n = model.n_examples
        assert path.predict(x) == model.predict_one(x)
        assert path.margin_locked(x) == model.decision_function_one(x)
        assert path.learn(x, True) is path.learn(x, 1) is path.learn_locked_any(x, np.True_) is True
        assert model.n_examples == n + 3
    for x in (
        # Numbers that have to be converted first.
        {"name 2": np.float16(0.5), "name 4": Decimal("0.25")},
        MappingProxyType({"name 5": 1.0}),
    ):
        n = model.n_examples
        assert path.predict(x) is path.learn(x, True) is None
        assert (path.margin_locked(x) > 0.0) == model.predict_one(x)
        assert path.learn_locked_any(x, False) is True
        assert model.n_examples == n + 1
    assert model.fast_path is path
    for x in ({"name 1": float("inf")}, {"name 1": "1.0"}, {"name 1": 1e300}, None, [1.0]):
        assert model.fast_path.predict(x) is model.fast_path.margin_locked(x) is None
        assert model.fast_path.learn(x, True) is model.fast_path.learn_locked_any(x, True) is None
    for label in ("True", 2, None, np.nan, [True]):
        assert (
            model.fast_path.learn({}, label) is model.fast_path.learn_locked_any({}, label) is None
        )


@pytest.mark.parametrize("sparse", [False, True])
def test_a_path_falls_back_while_a_thread_holds_the_lock(sparse):
    model = SVMSGDClassifier(sparse=sparse, t0=10.0)
    for i in range(4):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    with model.lock:
        for _ in range(2):
            assert (
                model.fast_path.predict({"a": 1.0})
                is model.fast_path.learn({"a": 1.0}, True)
                is None
            )
            found = model.fast_path.margin_locked({"a": 1.0})
            assert found == model.decision_function_one({"a": 1.0})
            with model.lock:
                model.learn_one({"a": 1.0}, True)
    assert model.fast_path.predict({"a": 1.0}) is not None
    assert model.n_examples == 6


def test_a_batch_between_an_event_that_is_due_and_the_look_back():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1100, 3))
    y = (rows[:, 0] > 0.0).tolist()
    events = [dict(enumerate(row)) for row in rows.tolist()]
    models = [SVMSGDClassifier(sparse=False) for _ in range(3)]
    for model in models:
        for x, label in zip(events[:1023], y[:1023], strict=True):
            model.learn_one(x, label)
    models[0].learn_one(events[1023], y[1023])
    # As if another thread came before the look back.
    for model in models[1:]:
        assert model.fast_path.learn(events[1023], y[1023]) is False
    models[2] = pickle.loads(pickle.dumps(models[2]))
    for model in models:
        model.learn_many(rows[1024:], y[1024:])
        assert model.solver.first_rows is None and model.n_examples == 1100
        assert model.weights == models[0].weights


def test_a_shallow_copy_leaves_the_first_rows_alone():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1100, 3))
    events = [(dict(enumerate(row)), row[0] > 0.0) for row in rows.tolist()]
    models = [SVMSGDClassifier() for _ in range(2)]
    for i, (x, label) in enumerate(events):
        if i % 100 == 50:
            assert copy.copy(models[1]).n_examples == i
        for model in models:
            model.learn_one(x, label)
    assert models[0].weights == models[1].weights and models[1].solver.first_rows is None


def test_events_after_names_that_are_not_listed_yet():
    """A row of a kernel learner has all columns, whoever asked for the names."""
    rng = np.random.default_rng(0)
    rows = scipy.sparse.random_array((40, 6), density=0.5, format="csr", rng=rng)
    found = []
    for asks in (False, True):
        model = LaRankClassifier(sparse=False, seed=1)
        for i in range(4):
            model.learn_one({0: 1.0 + i, 1: 2.0}, i % 2 == 0)
        model.learn_many(rows, [True] * 20 + [False] * 20)
        if asks:
            assert model.feature_names == list(range(6))
        found.append(model.decision_function_one({0: 0.5, 1: 1.0}))
    assert found[0] == found[1]


def test_threads_learn_each_event_once():
    """Batches, events that look back, events that bring names, and predictions, all at once."""
    for sparse in (False, True):
        model = SVMSGDClassifier(sparse=sparse)
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(300, 3))
        events = [{"a": r[0], "b": r[1], f"n{i % 50}": r[2]} for i, r in enumerate(rows.tolist())]
        frame = pa.table({name: rows[:50, i] for i, name in enumerate("abc")})

        def work(model=model, events=events, frame=frame):
            for i, x in enumerate(events):
                model.predict_one(x)
                # Of several classes from some moment on.
                model.learn_one(x, "third" if i % 70 == 69 else x["a"] > 0.0)
                if i % 100 == 50:
                    model.learn_many(frame, [True, False] * 25)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert model.n_examples == 4 * (300 + 3 * 50)
        assert model.solver.first_rows is None and len(model.feature_names) == 53
        assert model.counters["examples"] == int(model.state.info[0, T])


def test_a_method_outlives_its_model():
    model = SVMSGDClassifier(t0=10.0)
    for i in range(4):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    predict, learn = model.fast_path.predict, model.fast_path.learn
    expected = model.predict_one({"a": 1.0})
    del model
    gc.collect()
    assert predict({"a": 1.0}) is expected
    assert learn({"a": 1.0}, True) is True
    for wrong in ((), ({"a": 1.0},), ({"a": 1.0}, True, -1.0), ({"a": 1.0}, True, 1.0, 1.0)):
        assert learn(*wrong) is None
    with pytest.raises(TypeError):
        predict()


def test_values_that_close_the_path_while_they_become_floats():
    class Value:
        def __float__(self):
            model.learn_many(pa.table({f"f{i}": [1.0] for i in range(500)}), [True])
            return 1.0

    for sparse in (False, True):
        model = SVMSGDClassifier(sparse=sparse, t0=10.0)
        for i in range(4):
            model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
        path = model.fast_path
        assert path.margin_locked({"a": Value()}) is None
        assert path.predict({"a": 1.0}) is path.margin_locked({"a": 1.0}) is None
        model.learn_one({"a": 1.0, "b": 1.0}, True)
        assert model.fast_path.learn_locked_any({"a": Value()}, True) is None
        assert len(model.feature_names) == 502


def test_names_of_an_event_that_was_interrupted(monkeypatch):
    for sparse in (False, True):
        model = SVMSGDClassifier(sparse=sparse, t0=10.0, missing="zero")
        for i in range(4):
            model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
        before = model.state.weights.copy()
        extend = model.schema.extend

        def interrupted(names, extend=extend):
            extend(names)
            raise KeyboardInterrupt

        monkeypatch.setattr(model.schema, "extend", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.learn_one({f"n{i}": 1.0 for i in range(LONGEST + 1)}, True)
        monkeypatch.undo()
        assert model.fast_path.learn_locked_any({"n0": 1.0}, True) is None
        model.pace.bind_at = 0
        for name in ("n0", "n40", f"n{LONGEST}"):
            assert model.predict_one({name: 1e6}) == model.predict_one({})
        assert model.fast_path.is_open
        after = model.state.weights
        np.testing.assert_array_equal(after[:, :, : before.shape[2]], before)
        assert not after[:, 0, before.shape[2] :].any()
        model.learn_one({"n40": 1.0, "new": 1.0}, True)
        assert model.weights["n40"] != 0.0 and model.weights["new"] != 0.0
        assert len(model.feature_names) == len(set(model.feature_names)) == LONGEST + 4


def test_nothing_is_held_and_nothing_is_let_go():
    names = [f"name {i}" for i in range(300)]
    values = [1.5 + i for i in range(300)]
    events = [dict(zip(names[i : i + 20], values[i : i + 20], strict=True)) for i in range(280)]
    model = SVMSGDClassifier(sparse=True, t0=10.0)
    plain = SVMSGDClassifier(sparse=False, t0=10.0)
    for m in (model, plain):
        for i, event in enumerate(events):
            m.learn_one(event, bool(i % 2))
    found = []
    # The names of the last event are held: the same ones each time.
    for _ in range(2):
        for m in (model, plain):
            for i, event in enumerate(events):
                m.predict_one(event)
                m.learn_one(event, bool(i % 2))
                m.predict_one({names[i]: values[i], "unknown": 1.0})
                m.fast_path.predict({names[i]: "none"})
        found.append([sys.getrefcount(thing) for thing in (*names, *values, *events)])
    assert found[0] == found[1]
    # The list of the schema holds a new name.
    new = "".join(["a new", " name"])
    held = sys.getrefcount(new)
    model.learn_one({new: 1.0}, True)
    assert model.feature_names[-1] is new
    assert sys.getrefcount(new) == held + 1


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("place", ["_target_of", "_new_path", "_reserve_block"])
def test_an_interruption_before_a_path_leads_anywhere(monkeypatch, sparse, place):
    model = SVMSGDClassifier(sparse=sparse, t0=10.0)
    model.learn_one({"a": 1.0, "b": 1.0}, True)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(linear_native, place, interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.learn_one({"a": -1.0, "b": 1.0}, False)
    assert not model.fast_path.is_open
    for i in range(4):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    assert model.n_examples == 6 and model.fast_path.is_open
    assert model._event_learn is model.fast_path.learn


def test_a_third_class_frees_what_two_had():
    model = SVMSGDClassifier(hashing=2**12)
    for i in range(6):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, i % 2)
    weights, path = weakref.ref(model.state.weights), model.fast_path
    model.learn_one({"a": 0.0, "b": 1.0}, 2)
    gc.collect()
    assert weights() is None
    # The methods stay, and lead to three outputs.
    assert model.fast_path is path and path.is_open
    x = {"a": 2.0, "b": 1.0}
    assert path.predict(x) == model.predict_many(pa.table({"a": [2.0], "b": [1.0]}))[0].as_py()
    assert path.margin_locked(x) == list(model.decision_function_one(x).values())
    assert path.learn(x, 2) is path.learn_locked_any(x, np.float64(0.0)) is True
    assert path.learn(x, 3) is path.learn_locked_any(x, 3) is None
    assert model.n_examples == 9


def test_many_classes_of_labels_that_are_other_objects_each_time():
    model = SVMSGDClassifier(t0=10.0)
    for i in range(400):
        model.learn_one({"a": float(i % 7), "b": i % 40 / 40.0}, f"class {i % 40}")
    assert len(model.classes) == 40
    path = model.fast_path
    for i in range(40):
        assert path.learn({"a": 1.0, "b": 2.0}, f"class {i}") is True
    assert model.n_examples == 440 and path.learn({"a": 1.0}, "class 40") is None


@pytest.mark.parametrize("sparse", [False, True])
def test_an_interruption_while_weights_get_wider_loses_nothing(monkeypatch, sparse):
    model = SVMSGDClassifier(sparse=sparse, t0=10.0)
    for i in range(4):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    for i, (owner, place) in enumerate([(model, "bind_fast_path"), (linear_state, "grown")]):

        def interrupted(*arguments):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(owner, place, interrupted)
            with pytest.raises(KeyboardInterrupt):
                # The second time there is room for 2048 dense features, 2048 or 4096 sparse ones.
                for k in range(i, 6):
                    model.pace.bind_at = 0
                    model.learn_one({f"{i} {k} {c}": 1.0 for c in range(1000)}, True)
        before, n = model.weights["a"], model.n_examples
        for _ in range(3):
            model.learn_one({"a": 100.0}, True)
            model.learn_one({"a": 100.0}, False)
        assert model.n_examples == n + 6
        assert model.weights["a"] != before


@pytest.mark.parametrize("cls", [SVMSGDClassifier, SGDQNClassifier])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_wide_batch_when_a_look_back_is_due(cls, sparse):
    models = [cls(sparse=sparse) for _ in range(2)]
    rng = np.random.default_rng(0)
    wide = pa.table({f"n{i}": rng.normal(size=5) for i in range(300)})
    for k, model in enumerate(models):
        for i in range(15):
            model.learn_one({"a": float(i % 3), "b": float(i % 5)}, i % 2 == 0)
        event = {"a": 1.0, "b": 2.0}
        if k == 0:
            # As if it was interrupted before the look back.
            assert model.fast_path.learn(event, True) is False
        else:
            model.learn_one(event, True)
        model.learn_many(wide, [True, False] * 2 + [True])
    assert models[0].weights == models[1].weights and models[0].rate == models[1].rate


def test_a_block_for_first_events_is_not_part_of_a_model():
    model = SVMSGDClassifier(sparse=True)
    for i in range(5):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    n_kept = int(model.solver.first_rows._block.head[0])
    assert n_kept and 0 < model.memory_parts["first_rows"] < 1000
    # Asking changes nothing: somebody else may be learning.
    assert model.solver.first_rows._block.head[0] == n_kept
    assert len(pickle.dumps(model)) < 20_000
    other = pickle.loads(pickle.dumps(model))
    for m in (model, other):
        for i in range(100):
            m.learn_one({"a": float(i % 7), "b": 1.0}, i % 7 > 3)
    assert other.weights == model.weights and other.rate == model.rate


def test_hashed_weights_do_not_get_wider():
    model = SVMSGDClassifier(hashing=64, t0=10.0)
    for i in range(4):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    for event in ({"a": float("inf")}, {("a", 1.5): 1.0}):
        with contextlib.suppress(FeatureError):
            model.learn_one(event, True)
        assert model.state.weights.shape[2] == 64


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_shallow_copy_learns_classes_of_its_own(k):
    model = SVMSGDClassifier(t0=10.0)
    for i in range(30):
        model.learn_one({"a": float(i % 5), "b": 1.0 - i % 3}, "pqr"[i % k])
    x = {"a": 1.0, "b": 2.0}
    before = model.decision_function_one(x), model.predict_proba_one(x), model.weights
    other = copy.copy(model)
    for label in ("new", "p", "newer"):
        other.learn_one(x, label)
    assert (model.decision_function_one(x), model.predict_proba_one(x), model.weights) == before
    assert len(model.classes) == k and len(other.classes) == k + 2
    assert len(other.predict_proba_one(x)) == k + 2
    model.learn_one(x, "p")
    assert model.n_examples == 31 and other.n_examples == 33


def test_labels_are_held_while_they_are_known():
    labels = ["".join(["label ", str(i)]) for i in range(5)]
    model = SVMSGDClassifier(t0=10.0)
    for i in range(10):
        model.learn_one({"a": float(i), "b": 1.0}, labels[i % 5])
    before = [sys.getrefcount(label) for label in labels]
    for i in range(300):
        x = {"a": float(i % 7), "b": 1.0}
        assert model.predict_one(x) in labels
        model.learn_one(x, labels[i % 5])
        model.fast_path.predict({"a": "bad"})
    assert [sys.getrefcount(label) for label in labels] == before
    del model
    gc.collect()
    assert all(sys.getrefcount(label) < n for label, n in zip(labels, before, strict=False))


def test_a_path_that_is_of_no_use_is_bound_ever_more_rarely(monkeypatch):
    """Names that machine code does not read: binding must not cost more than learning."""
    bound = []
    bind = linear_native.bind
    monkeypatch.setattr(linear_native, "bind", lambda model: bound.append(1) or bind(model))
    model = SVMSGDClassifier(t0=10.0, sparse=True, hashing=64)
    for i in range(600):
        x = {("odd", i % 3): 1.0, "a": 1.0}
        model.predict_one(x)
        model.learn_one(x, bool(i % 2))
    assert 1 < len(bound) < 40
    for i in range(5000):
        model.learn_one({"a": 1.0, "b": 1.0}, bool(i % 2))
    assert model.fast_path.is_open and len(bound) < 60
