"""The compiled path of events, and the general path: nothing but speed differs.

Names, values, labels and weights are drawn, odd ones among them; and other things happen in
between. That events by one path and batches by the other make one model is asked by
`test_one_model`.
"""

import collections
import contextlib
import copy
import pickle
import zlib
from collections import Counter, OrderedDict, UserDict
from types import MappingProxyType
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import datasets

from streamsvm import (
    LaRankClassifier,
    LASVMClassifier,
    SGDQNClassifier,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.errors import FeatureError
from streamsvm.features.event_reader import LONGEST
from streamsvm.features.matrices import Matrix, are_usable
from streamsvm.features.packing import crc32, list_event
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.registry import registered_learners
from tests.learners.test_all_learners import content
from tests.odd_events import NUMBERS, ODD, ODD_NAMES, PLAIN_NAMES, GeneralPath
from tests.slow import slow_but


class GeneralSGD(GeneralPath, SVMSGDClassifier):
    pass


class GeneralSGDQN(GeneralPath, SGDQNClassifier):
    pass


KINDS = st.sampled_from([dict, dict, dict, Counter, OrderedDict, MappingProxyType, UserDict])


TWO = st.booleans()
RARELY = st.integers(0, 5).map(lambda i: i == 5)
SEVERAL = st.sampled_from(
    [True, False, 1, "third", np.str_("third"), 4, np.int64(4), ("a", 5), None, float("nan"), [1]]
)


@st.composite
def streams(draw, names, values, labels=TWO, has_odd=False):
    """Return events, many of the same names, and labels; odd names and values in a few."""
    events = []
    for _ in range(draw(st.integers(3, 25))):
        content = draw(st.dictionaries(names, values, max_size=6))
        if has_odd and draw(RARELY):
            content |= draw(st.dictionaries(ODD_NAMES | names, ODD | NUMBERS, max_size=1))
        events.append(draw(KINDS)(content))
    return events, draw(st.lists(labels, min_size=len(events), max_size=len(events)))


def results_of(model, events, y, weights):
    """Return the results of a stream: predictions, and errors."""
    found = []
    for event, label, w in zip(events, y, weights, strict=True):
        learnt = (label,) if w is None else (label, w)
        asked = (model.predict_one, model.predict_proba_one, model.decision_function_one)
        for call, arguments in (*((method, ()) for method in asked), (model.learn_one, learnt)):
            try:
                found.append(call(event, *arguments))
            except (FeatureError, TypeError, ValueError, OverflowError) as error:
                found.append((type(error), str(error)))
    return found


def check_same(params, stream, weights=None, kinds=(SVMSGDClassifier, GeneralSGD)):
    events, y = stream
    weights = [None] * 3 + (weights or [None] * len(events))[: len(events)]
    # Two classes and two names first, so that there is a fast path from then on.
    first = [{"a": 1.0, "b": -1.0}, {"a": -1.0, "b": 0.5}, {"a": 0.5, "b": 0.5}]
    models = [cls(**{"t0": 10.0, **params}) for cls in kinds]
    results = [
        results_of(model, first + events, [True, False, True, *y], weights) for model in models
    ]
    assert results[0] == results[1]
    fast, general = models
    assert fast.feature_names == general.feature_names
    assert fast.schema.index == {name: i for i, name in enumerate(fast.feature_names)}
    assert fast.schema.is_range == general.schema.is_range
    assert fast.weights == general.weights and fast.intercept == general.intercept
    np.testing.assert_array_equal(fast.targets.calibration, general.targets.calibration)
    return fast


SETTINGS = [
    {"sparse": False},
    {"sparse": True},
    {"hashing": 4},
    {"sparse": True, "max_features": 5},
]


STEPS = [(SVMSGDClassifier, GeneralSGD), (SGDQNClassifier, GeneralSGDQN)]


WEIGHTS = st.lists(
    st.sampled_from([None, 1.0, 0.5, 2, 3.25, 0.0, 0, True, np.float32(0.1), np.float64(2.5)])
    | st.sampled_from([np.int64(3), 1e300, -1.0, float("nan"), float("inf"), "2", 10**400, [1.0]]),
    min_size=25,
    max_size=25,
)


@pytest.mark.parametrize("kinds", STEPS, ids=["SGD", "SGD-QN"])
@pytest.mark.parametrize(
    "params", [*SETTINGS, {"t0": None}, {"class_weight": {"third": 0.3, True: 2.0}}], ids=str
)
@given(stream=streams(PLAIN_NAMES, NUMBERS, SEVERAL, True), weights=st.none() | WEIGHTS)
@settings(max_examples=40, deadline=None)
def test_all_is_learnt_and_refused_as_by_the_general_path(params, kinds, stream, weights):
    check_same(params, stream, weights, kinds)


CHANGES = st.lists(
    st.sampled_from(["none", "none", "value", "pop", "name", "same text", "another first"]),
    min_size=25,
    max_size=25,
)


def changed(event, how, names):
    """Change an event in place as somebody may between two calls."""
    key = next(iter(event), None)
    if how == "value" and event:
        event[key] = -float(event[key]) - 0.5
    elif how == "pop" and event:
        del event[key]
    elif how == "name":
        event[f"new {len(names)}"] = 1.0
        names.append(None)
    elif how == "same text" and isinstance(key, str):
        event["".join(list(key))] = event.pop(key)


@pytest.mark.parametrize("params", [*SETTINGS[:3], {"sparse": True, "max_features": 8}], ids=str)
@given(stream=streams(PLAIN_NAMES, NUMBERS), changes=CHANGES)
@settings(max_examples=30, deadline=None)
def test_events_that_change_after_they_were_predicted_are_read_anew(params, stream, changes):
    first = [{"a": 1.0, "b": -1.0}, {"a": -1.0, "b": 0.5}, {"a": 0.5, "b": 0.5}]
    found = []
    for cls in (SVMSGDClassifier, GeneralSGD):
        model, names, told = cls(t0=10.0, **params), [], []
        for x, y in zip(first, [True, False, True], strict=True):
            model.learn_one(x, y)
        for event, y, how in zip(*stream, changes, strict=False):
            x = dict(event)
            told.append(model.predict_one(x))
            if how == "another first":
                # Its new names are known then.
                model.learn_one(x, y, w=0.5)
            else:
                changed(x, how, names)
            told.append(model.predict_one(x))
            model.learn_one(x, y)
            told.append(model.predict_one(x))
        found.append((told, model.feature_names, model.weights, model.intercept))
    assert found[0] == found[1]


@pytest.mark.parametrize("sparse", [False, True])
def test_new_names_get_their_columns_in_order_and_events_of_any_length_are_learnt(sparse):
    model = SVMSGDClassifier(sparse=sparse, t0=10.0)
    model.learn_one({"b": 1.0, "a": 1.0}, True)
    model.learn_one({"a": 1.0}, False)
    for i in range(6):
        model.learn_one({f"{c}{i}": 1.0 for c in "zäbの"} | {9 - i: 1.0, 20 - i: 1.0}, True)
    expected = ["a", "b"]
    for i in range(6):
        expected += [9 - i, 20 - i, f"b{i}", f"z{i}", f"ä{i}", f"の{i}"]
    assert model.feature_names == expected
    for n in (LONGEST - 1, LONGEST, LONGEST + 1, 3 * LONGEST):
        model.learn_one({f"{n}, {i}": 1.0 for i in range(n)}, True)
        assert len(model.feature_names) == len(expected) + n
        expected = model.feature_names
    assert model.n_examples == 12


def test_half_precision_is_looked_at_as_the_number_that_it_is():
    values = np.array([[1.0, 2.0], [np.inf, 1.0], [np.nan, 1.0]], np.float16)
    usable = are_usable(Matrix([0, 1], values, None), float(np.finfo(np.float32).max))
    assert usable.tolist() == [True, False, True]


def test_columns_that_meet_do_not_become_infinite():
    events = [{"a": 3e38, "b": 3e38, "c": 3e38, "d": 3e38}, {"a": 1.0}, {"b": -1.0}]
    models = [SVMSGDClassifier(hashing=2, t0=10.0) for _ in range(2)]
    for i in range(30):
        models[0].learn_one(events[i % 3], bool(i % 2))
    frame = pa.table({name: [event.get(name) for event in events * 10] for name in "abcd"})
    models[1].learn_many(frame, [bool(i % 2) for i in range(30)])
    for model in models:
        assert np.isfinite(model.state.weights).all()


@given(st.binary(max_size=40))
@settings(deadline=None)
def test_hashes_are_those_of_zlib(content):
    assert crc32(np.frombuffer(content, np.uint8)) == zlib.crc32(content)


def listed(columns, given):
    """Do as `list_event` does."""
    found = {}
    for column, value in zip(columns, given, strict=True):
        with np.errstate(over="ignore"):
            value = np.float32(value)
        if np.isinf(value):
            return None
        if column >= 0 and abs(value) > 0.0:
            found[column] = np.float32(found[column] + value) if column in found else value
    return sorted(found.items())


@given(
    st.lists(st.tuples(st.integers(-1, 40), st.sampled_from([0.0, 1.5, -0.1, 1e-3])), max_size=60),
    st.sampled_from([0.0, 1.0, np.inf, np.nan, 1e39]),
    st.integers(1, 10_000),
)
@settings(deadline=None)
def test_an_event_is_listed_in_order(event, odd, factor):
    event = [(column * factor if column > 0 else column, value) for column, value in event]
    event += [(7, odd)]
    columns = np.array([column for column, _ in event], np.int32)
    given = np.array([value for _, value in event])
    expected = listed(columns.tolist(), given)
    out, values = np.zeros(len(event), np.int32), np.zeros(len(event), np.float32)
    kept, ranks = np.zeros(len(event), np.uint32), np.zeros(len(event), np.int32)
    n = list_event(columns, given, len(event), kept, ranks, out, values)
    if expected is None:
        assert n == -1
    else:
        assert list(zip(out[:n].tolist(), values[:n].tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    "model",
    [SVMSGDClassifier(sparse=True, t0=10.0), LASVMClassifier(sparse=True, seed=1)],
    ids=["linear", "kernel"],
)
def test_names_for_which_there_is_no_room_yet_take_the_general_path(model):
    """As interruptions leave them, which come after names are noted and before the state grows."""
    twin = copy.deepcopy(model)
    for i in range(20):
        for one in (model, twin):
            one.learn_one({"a": 1.0, "b": float(i % 5)}, i % 2)
    path = model.event_path
    wide = {f"w{i}": 1.0 for i in range(path.room)}
    model.schema.extend(list(wide))
    assert len(model.schema.index) > path.room
    x = {"w3": 1.0, f"w{path.room - 1}": 2.0}
    assert path._write_plain(model, x) == -1
    for y in (0, 1, 0):
        model.predict_one(x)
        for one in (model, twin):
            one.learn_one(wide if y else x, y)
    assert model.n_examples == 23
    assert model.decision_function_one(x) == twin.decision_function_one(x)


# Kernel learners, and all others


KERNEL_MODELS = {
    "rbf": lambda: LASVMClassifier(kernels.RBF(gamma=1.0), C=5.0),
    "tracking": lambda: TrackingSVMClassifier(kernels.RBF(gamma=1.0), K=3, seed=0),
}
STREAM = list(datasets.Bananas().take(1300))


@contextlib.contextmanager
def general():
    """Have all events take the general path."""
    with (
        mock.patch.object(Learner, "_predict_event", lambda *a: (-1, None)),
        mock.patch.object(Learner, "_learn_event", lambda *a: False),
    ):
        yield


def run(model, stream):
    for x, y in stream:
        model.decision_function_one(x)
        model.learn_one(x, y)


@pytest.mark.parametrize("name", ["rbf", "tracking"])
def test_other_things_between_predicting_and_learning(name):
    """A row counts as predicted only if nothing used the scratch since, and only that row."""
    plain, disturbed = KERNEL_MODELS[name](), KERNEL_MODELS[name]()
    # Of another weight an event takes the general path, with a row of its own.
    weights = [2.0 if i % 14 == 0 else 1.0 for i in range(len(STREAM))]
    for (x, y), w in zip(STREAM, weights, strict=True):
        plain.learn_one(x, y, w=w)
    x_of = [x for x, _ in STREAM]
    for i, (x, y) in enumerate(STREAM):
        disturbed.predict_one(x)
        if i % 7 == 0:
            disturbed.predict_one(x_of[(i * 31) % 1300])
        if i % 11 == 0:
            disturbed.margins_of(np.array([list(x_of[(i * 17) % 1300].values())], np.float32))
        if i % 13 == 0:
            with pytest.raises(FeatureError):
                disturbed.predict_one(x | {"1": float("inf")})
        if i % 17 == 0:
            disturbed = pickle.loads(pickle.dumps(disturbed))
        disturbed.learn_one(x, y, w=weights[i])
    n = min(plain.state.alpha.size, disturbed.state.alpha.size)
    np.testing.assert_array_equal(plain.state.alpha[:n], disturbed.state.alpha[:n])


def test_features_and_labels_in_other_forms():
    model, plain = KERNEL_MODELS["rbf"](), KERNEL_MODELS["rbf"]()
    run(plain, STREAM[:400])
    for i, (x, y) in enumerate(STREAM[:400]):
        if i % 3 == 1:
            x = {name: np.float64(x[name]) for name in reversed(x)}
        model.learn_one(x, np.bool_(y) if i % 2 else int(y))
        missing = {name: value for name, value in x.items() if name != "1"}
        assert model.decision_function_one(missing) == model.decision_function_one(
            missing | {"1": None, "unseen": 3.0}
        )
    assert content(model)[1] == content(plain)[1] and model.n_examples == plain.n_examples


def test_the_classifier_given_out_may_change():
    model = KERNEL_MODELS["tracking"]()
    run(model, STREAM[:300])
    x = STREAM[300][0]
    averaged = model.decision_function_one(x)
    model.averaged = False
    plain = model.decision_function_one(x)
    assert plain != averaged
    with general():
        assert model.decision_function_one(x) == plain
    model.averaged = True
    assert model.decision_function_one(x) == averaged


SEVERAL = {
    "larank": lambda: LaRankClassifier(kernels.RBF(gamma=0.5), seed=3),
    "larank auto": lambda: LaRankClassifier(seed=3, class_weight={"sky": 2.0}),
    "larank uniform": lambda: LaRankClassifier(kernels.RBF(gamma=0.5), K=2, window=60, seed=3),
    "sgd": lambda: SVMSGDClassifier(),
    "sgd sparse": lambda: SVMSGDClassifier(sparse=True, class_weight={"sky": 2.0}),
    "sgdqn": lambda: SGDQNClassifier(t0=10.0),
    "hashed": lambda: SGDQNClassifier(hashing=64),
    "lasvm sparse": lambda: LASVMClassifier(kernels.RBF(gamma=0.5), sparse=True),
    "lasvm hashed": lambda: LASVMClassifier(kernels.Linear(), hashing=16),
    "tracking sparse": lambda: TrackingSVMClassifier(kernels.RBF(gamma=0.5), sparse=True, seed=1),
}
# What they compile, the tests of all learners or of sparse rows compile once more.
RARE = ("larank uniform", "tracking sparse")
IMAGES = [
    ({name: value / 100.0 for name, value in x.items()}, y)
    for x, y in datasets.ImageSegments().take(400)
]


@pytest.mark.parametrize("name", slow_but(SEVERAL, *(n for n in SEVERAL if n not in RARE)))
def test_weights_new_features_classes_and_odd_events(name):
    """Whatever comes, the event path makes the model that the general path makes."""
    monitored, plain = SEVERAL[name](), SEVERAL[name]()
    is_binary = not name.startswith(("larank", "sgd", "hashed"))
    monitor = TrackingMonitor(monitored, every=1000)

    def learn(model):
        found = []
        for i, (x, y) in enumerate(IMAGES):
            x = {k: v for j, (k, v) in enumerate(x.items()) if (i + j) % 9}
            if i % 50 > 40:
                x[f"new {i // 50}"] = float(i % 3)
            if i % 29 == 0:
                x = collections.UserDict(x)
            label = y == "sky" if is_binary else y
            found.append(model.predict_one(x))
            model.learn_one(x, label, w=1 + i % 3 if i % 2 else 0.5 * (i % 4))
            with pytest.raises(FeatureError):
                model.learn_one({"a": "b"}, label)
            found.append(model.decision_function_one(x))
            found.append(model.predict_proba_one(x))
        return found

    seen = learn(monitored)
    with general():
        assert learn(plain) == seen
    np.testing.assert_array_equal(monitored.targets.calibration, plain.targets.calibration)
    assert monitored.feature_names == plain.feature_names
    assert monitor.get()["n_examples"] == len(IMAGES) == plain.n_examples


@pytest.mark.parametrize("learner", registered_learners("rows"), ids=lambda learner: learner.name)
def test_events_of_weight_0_and_weights_of_numpy_take_the_event_path(learner, monkeypatch):
    stream = [(x, y) for x, y in datasets.Bananas().take(60)]
    model, twin = (learner.cls(**next(learner.cls._unit_test_params())) for _ in range(2))
    for one in (model, twin):
        for x, y in stream[:40]:
            one.learn_one(x, y)
    if model.model.event_parts()[0] is None:
        pytest.skip("it has no compiled path for events")
    weights = [0.0, 0, False, True, np.float64(0.0), np.float32(2.0), np.int64(3), np.bool_(True)]
    for (x, y), w in zip(stream[40:], weights, strict=False):
        twin.learn_many(pd.DataFrame([x]), [y], float(w))
    monkeypatch.setattr(Learner, "_learn_generally", None)
    for (x, y), w in zip(stream[40:], weights, strict=False):
        model.learn_one(x, y, w)
    for x, _ in stream:
        assert model.decision_function_one(x) == twin.decision_function_one(x)
    assert model.n_examples == twin.n_examples == 48
