"""One call for an event, and the general path: nothing but speed differs.

Names, values, labels and weights are drawn, odd ones among them.
"""

import copy
import zlib
from collections import Counter, OrderedDict, UserDict
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import LASVMClassifier, SGDQNClassifier, SVMSGDClassifier
from streamsvm.errors import FeatureError
from streamsvm.features.event_reader import LONGEST
from streamsvm.features.matrices import Matrix, are_usable
from streamsvm.features.packing import crc32, list_event
from tests.odd_events import NUMBERS, ODD, ODD_NAMES, PLAIN_NAMES, GeneralPath


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
