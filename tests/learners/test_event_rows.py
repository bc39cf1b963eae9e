"""The short ways of events: compiled code reads dicts itself, and nothing but speed differs."""

import ast
import copy
import gc
import pickle
import sys
import threading
import zlib
from collections import Counter, OrderedDict, UserDict, defaultdict
from decimal import Decimal
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import LaRankClassifier, SGDQNClassifier, SVMSGDClassifier, load
from streamsvm._compile import address_of, compiled_with_python
from streamsvm.errors import FeatureError, ModelFileError
from streamsvm.learners import vocabulary
from streamsvm.learners.event_rows import LONGEST, _digits
from streamsvm.learners.linear_events import DUE, GIVE_UP, NO_WAY
from streamsvm.learners.matrices import Matrix, are_usable
from streamsvm.learners.packing import crc32, list_event
from streamsvm.learners.vocabulary import Vocabulary, column_of, hash_of
from streamsvm.solvers.linear_state import T
from streamsvm.support import python_objects as py


class TheLongWay(SVMSGDClassifier):
    """Has no other."""

    def _new_short_way(self):
        return NO_WAY


PLAIN_NAMES = st.one_of(
    st.sampled_from(["a", "b", "c", "d", "zz"]),
    st.text(max_size=3),
    st.integers(-3, 6),
    st.integers(-(2**70), 2**70),
    st.just(-(2**63)),
    st.tuples(st.sampled_from(["a", "b", 1]), st.integers(0, 3)),
)
NUMBERS = st.one_of(
    st.floats(-3.0, 3.0),
    st.integers(-3, 3),
    st.booleans(),
    st.floats(-3.0, 3.0, width=32).map(np.float32),
    st.floats(-3.0, 3.0).map(np.float64),
)
ODD = st.one_of(
    st.sampled_from([None, "1.5", "", b"1", float("nan"), float("inf"), 1e39, 10**400, 1j, [1.0]]),
    st.sampled_from([Decimal("1.5"), np.int64(2), np.float16(0.5), np.float64("nan")]),
)
ODD_NAMES = st.one_of(
    st.tuples(st.just("a"), st.booleans()), st.booleans(), st.none(), st.just("\ud800")
)
KINDS = st.sampled_from([dict, dict, dict, Counter, OrderedDict, MappingProxyType, UserDict])


@st.composite
def streams(draw, names, values):
    """Return events, many of the same names, and labels."""
    events = []
    for _ in range(draw(st.integers(3, 25))):
        content = draw(st.dictionaries(names, values, max_size=6))
        events.append(draw(KINDS)(content))
    return events, draw(st.lists(st.booleans(), min_size=len(events), max_size=len(events)))


def went(model, events, y):
    """Return what became of a stream: predictions, refusals."""
    found = []
    for event, label in zip(events, y, strict=True):
        for call, arguments in ((model.predict_one, ()), (model.learn_one, (label,))):
            try:
                found.append(call(event, *arguments))
            except (FeatureError, TypeError, ValueError, OverflowError) as error:
                found.append((type(error), str(error)))
    return found


def check_same(params, stream):
    events, y = stream
    # Two classes and two names first, so that there is a short way from then on.
    first = [{"a": 1.0, "b": -1.0}, {"a": -1.0, "b": 0.5}, {"a": 0.5, "b": 0.5}]
    models = [cls(t0=10.0, **params) for cls in (SVMSGDClassifier, TheLongWay)]
    results = [went(model, first + events, [True, False, True, *y]) for model in models]
    assert results[0] == results[1]
    short, long = models
    assert short.feature_names == long.feature_names
    assert short._schema.index == {name: i for i, name in enumerate(short.feature_names)}
    assert short._schema.is_range == long._schema.is_range
    assert short.weights == long.weights and short.intercept == long.intercept
    np.testing.assert_array_equal(short._calibration, long._calibration)


WAYS = [{"sparse": False}, {"sparse": True}, {"hashing": 4}, {"sparse": True, "max_features": 5}]


@pytest.mark.parametrize("params", WAYS, ids=str)
@given(stream=streams(PLAIN_NAMES, NUMBERS))
@settings(max_examples=60, deadline=None)
def test_plain_events_are_learnt_as_by_the_long_way(params, stream):
    check_same(params, stream)


@pytest.mark.parametrize("params", WAYS, ids=str)
@given(stream=streams(st.one_of(PLAIN_NAMES, ODD_NAMES), st.one_of(NUMBERS, ODD)))
@settings(max_examples=60, deadline=None)
def test_odd_events_are_learnt_or_refused_as_by_the_long_way(params, stream):
    check_same(params, stream)


@pytest.mark.parametrize("params", [{"sparse": False}, {"sparse": True}, {"hashing": 64}], ids=str)
@pytest.mark.parametrize("cls", [SVMSGDClassifier, SGDQNClassifier])
def test_events_of_known_names_do_go_the_short_way(cls, params):
    model = cls(t0=10.0, **params)
    names = [f"name {i}" for i in range(20)]
    for i in range(4):
        model.learn_one({name: 1.0 + i for name in names}, bool(i % 2))
    assert model._way.predict({}) is not GIVE_UP
    way = model._way
    for x in (
        dict.fromkeys(names, 1.0),
        dict.fromkeys(reversed(names), True),
        Counter(["name 1", "name 3"]),
        defaultdict(float, {"name 7": np.float32(0.5)}),
        # Equal names that are other objects.
        {"".join(list(name)): 2 for name in names},
    ):
        n = model.n_examples
        assert way.predict(x) == way.predict_held(x) == model.predict_one(x)
        assert way.learn(x, True) is way.learn(x, 1) is way.learn_held(x, np.True_) is None
        assert model.n_examples == n + 3
    for x in (
        # Numbers that have to be converted first.
        {"name 2": np.float16(0.5), "name 4": Decimal("0.25")},
        MappingProxyType({"name 5": 1.0}),
    ):
        n = model.n_examples
        assert way.predict(x) is way.learn(x, True) is GIVE_UP
        assert way.predict_held(x) == model.predict_one(x)
        assert way.learn_held(x, False) is None
        assert model.n_examples == n + 1
    assert model._way is way
    model.learn_one({("1", 0): 1.0}, True)
    if "hashing" not in params:
        assert model._way.predict({tuple(["1", 0]): 1.0, "name 1": 1.0}) is not GIVE_UP
    for x in ({"name 1": float("nan")}, {"name 1": "1.0"}, {"name 1": 1e300}, None, [1.0]):
        assert model._way.predict(x) is model._way.predict_held(x) is GIVE_UP
        assert model._way.learn(x, True) is model._way.learn_held(x, True) is GIVE_UP
    for label in ("True", 2, None, np.nan, [True]):
        assert model._way.learn({}, label) is model._way.learn_held({}, label) is GIVE_UP


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


def test_dense_events_with_new_features_go_the_short_way():
    model = SVMSGDClassifier(sparse=False, t0=10.0)
    for i in range(4):
        model.learn_one({"b": 1.0 + i, "d": 1.0}, bool(i % 2))
    way = model._way
    assert way.learn({"d": 1.0, "c": 2.0, "a": 3.0}, True) is None
    assert model.feature_names == ["b", "d", "a", "c"]
    assert way.predict({"unknown": 1.0, "c": 1.0}) is model.predict_one({"c": 1.0})
    assert way.learn({name: 1.0 for name in "dcbazyx"}, False) is None
    assert model.feature_names == ["b", "d", "a", "c", "x", "y", "z"]
    assert model._way is way
    other = TheLongWay(sparse=False, t0=10.0)
    for i in range(4):
        other.learn_one({"b": 1.0 + i, "d": 1.0}, bool(i % 2))
    other.learn_one({"d": 1.0, "c": 2.0, "a": 3.0}, True)
    other.learn_one({name: 1.0 for name in "abcdxyz"}, False)
    assert model.weights == other.weights
    # Until there is no room for more.
    while model._way is way:
        model.learn_one({f"name {model.n_examples}": 1.0}, True)
    assert len(model.feature_names) > 50


@pytest.mark.parametrize("sparse", [False, True])
def test_a_way_gives_up_while_somebody_holds_the_lock(sparse):
    model = SVMSGDClassifier(sparse=sparse, t0=10.0)
    for i in range(4):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    with model._lock:
        for _ in range(2):
            assert model._way.predict({"a": 1.0}) is model._way.learn({"a": 1.0}, True) is GIVE_UP
            assert model.predict_one({"a": 1.0}) is model._way.predict_held({"a": 1.0})
            with model._lock:
                model.learn_one({"a": 1.0}, True)
    assert model._way.predict({"a": 1.0}) is not GIVE_UP
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
        assert model._way.learn(events[1023], y[1023]) is DUE
    models[2] = pickle.loads(pickle.dumps(models[2]))
    for model in models:
        model.learn_many(rows[1024:], y[1024:])
        assert model._first is None and model.n_examples == 1100
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
    assert models[0].weights == models[1].weights and models[1]._first is None


def test_half_precision_is_looked_at_as_the_number_that_it_is():
    values = np.array([[1.0, 2.0], [np.inf, 1.0], [np.nan, 1.0]], np.float16)
    usable = are_usable(Matrix([0, 1], values, None), float(np.finfo(np.float32).max))
    assert usable.tolist() == [True, False, False]


def test_a_file_with_more_features_than_it_allows(tmp_path):
    model = SVMSGDClassifier(t0=10.0, sparse=False)
    for i in range(4):
        model.learn_one({f"n{k}": 1.0 + i for k in range(64)}, bool(i % 2))
    model.max_features = 40
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="more features"):
        load(tmp_path / "model")


def test_names_that_are_listed_by_two_threads():
    rows = scipy.sparse.csr_matrix(([1.0, 1.0], ([0, 1], [5, 6])), shape=(2, 300_000))
    for _ in range(3):
        model = SVMSGDClassifier(t0=10.0, sparse=True)
        model.learn_many(rows, [True, False])
        calls = (
            lambda model=model: model._schema.names,
            lambda model=model: model._schema.index,
            lambda model=model: model.learn_one({5: 1.0, "new": 1.0}, True),
        )
        threads = [threading.Thread(target=call) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert model.feature_names == [*range(300_000), "new"]
        assert model._schema.index["new"] == 300_000 and len(model._schema.index) == 300_001


def test_an_interruption_leaves_the_table_of_names_whole(monkeypatch):
    names = list(range(10))
    found = Vocabulary(names)
    found.update()
    names += range(10, 5000)

    def interrupted(array):
        raise KeyboardInterrupt

    monkeypatch.setattr(vocabulary, "address_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        found.update()
    monkeypatch.undo()
    assert columns_in(found, names[:10]) == list(range(10))
    found.update()
    assert columns_in(found, names) == names


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
                model.learn_one(x, x["a"] > 0.0)
                if i % 100 == 50:
                    model.learn_many(frame, [True, False] * 25)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert model.n_examples == 4 * (300 + 3 * 50)
        assert model._first is None and len(model.feature_names) == 53
        assert model.counters["examples"] == int(model._state.info[0, T])


def test_a_method_outlives_its_model():
    model = SVMSGDClassifier(t0=10.0)
    for i in range(4):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    predict, learn = model._way.predict, model._way.learn
    expected = model.predict_one({"a": 1.0})
    del model
    gc.collect()
    assert predict({"a": 1.0}) is expected
    assert learn({"a": 1.0}, True) is None
    for wrong in ((), ({"a": 1.0},), ({"a": 1.0}, True, 1.0)):
        assert learn(*wrong) is GIVE_UP
    with pytest.raises(TypeError):
        predict()


def test_values_that_close_the_way_while_they_become_floats():
    class Value:
        def __float__(self):
            model.learn_many(pa.table({f"f{i}": [1.0] for i in range(500)}), [True])
            return 1.0

    for sparse in (False, True):
        model = SVMSGDClassifier(sparse=sparse, t0=10.0)
        for i in range(4):
            model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
        way = model._way
        assert way.predict_held({"a": Value()}) is GIVE_UP
        assert way.predict({"a": 1.0}) is way.predict_held({"a": 1.0}) is GIVE_UP
        model.learn_one({"a": 1.0, "b": 1.0}, True)
        assert model._way.learn_held({"a": Value()}, True) is GIVE_UP
        assert len(model.feature_names) == 502


def test_names_of_an_event_that_was_interrupted(monkeypatch):
    for sparse in (False, True):
        model = SVMSGDClassifier(sparse=sparse, t0=10.0)
        for i in range(4):
            model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
        before = model._state.weights.copy()
        extend = model._schema.extend

        def interrupted(names, extend=extend):
            extend(names)
            raise KeyboardInterrupt

        monkeypatch.setattr(model._schema, "extend", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.learn_one({f"n{i}": 1.0 for i in range(300)}, True)
        monkeypatch.undo()
        assert model._way.predict_held({"a": Decimal(1)}) is not None
        for name in ("n0", "n40", "n299"):
            # It has no weight yet, or no place for one.
            assert model._way.predict_held({name: 1e6}) in (GIVE_UP, model.predict_one({}))
            assert model._way.learn_held({name: 1e6}, True) is GIVE_UP
        after = model._state.weights
        np.testing.assert_array_equal(after[:, :, : before.shape[2]], before)
        assert not after[:, 0, before.shape[2] :].any()
        model.learn_one({"n40": 1.0, "new": 1.0}, True)
        assert model.weights["n40"] != 0.0 and model.weights["new"] != 0.0
        assert len(model.feature_names) == len(set(model.feature_names)) == 303


def test_ids_of_many_fields_are_found_at_once():
    names = [(field << 32) | value for field in range(8) for value in range(4000)]
    table = Vocabulary(names)
    table.update()
    assert columns_in(table, names) == list(range(len(names)))
    empty = np.flatnonzero(table._kept[-1][:, 1] == 0)
    assert np.diff(empty).max() < 100


def test_columns_that_meet_do_not_become_infinite():
    events = [{"a": 3e38, "b": 3e38, "c": 3e38, "d": 3e38}, {"a": 1.0}, {"b": -1.0}]
    models = [SVMSGDClassifier(hashing=2, t0=10.0) for _ in range(2)]
    for i in range(30):
        models[0].learn_one(events[i % 3], bool(i % 2))
    frame = pa.table({name: [event.get(name) for event in events * 10] for name in "abcd"})
    models[1].learn_many(frame, [bool(i % 2) for i in range(30)])
    for model in models:
        assert np.isfinite(model._state.weights).all()


def test_nothing_is_held_and_nothing_is_let_go():
    names = [f"name {i}" for i in range(300)]
    values = [1.5 + i for i in range(300)]
    events = [dict(zip(names[i : i + 20], values[i : i + 20], strict=True)) for i in range(280)]
    model = SVMSGDClassifier(sparse=True, t0=10.0)
    plain = SVMSGDClassifier(sparse=False, t0=10.0)
    for m in (model, plain):
        for i, event in enumerate(events):
            m.learn_one(event, bool(i % 2))
    before = [sys.getrefcount(thing) for thing in (*names, *values, *events)]
    for m in (model, plain):
        for i, event in enumerate(events):
            m.predict_one(event)
            m.learn_one(event, bool(i % 2))
            m.predict_one({names[i]: values[i], "unknown": 1.0})
            m._way.predict({names[i]: "none"})
    assert [sys.getrefcount(thing) for thing in (*names, *values, *events)] == before
    # Of a new name, the list and the dict of the schema hold one each.
    new = "".join(["a new", " name"])
    held = sys.getrefcount(new)
    model.learn_one({new: 1.0}, True)
    assert model.feature_names[-1] is new
    assert sys.getrefcount(new) == held + 2


@pytest.mark.parametrize("sparse", [False, True])
def test_names_of_arrays_are_listed_when_somebody_asks(sparse):
    rng = np.random.default_rng(0)
    rows = scipy.sparse.random_array((20, 3000), density=0.01, format="csr", rng=rng)
    y = rng.random(20) > 0.5
    models = [SVMSGDClassifier(sparse=sparse, t0=10.0) for _ in range(2)]
    models[0].learn_many(rows, y)
    assert len(models[0]._schema._names) == 0 and len(models[0]._schema) == 3000
    models[1].learn_many(rows, y)
    assert models[1].feature_names == list(range(3000))
    copied = pickle.loads(pickle.dumps(models[0]))
    wider = scipy.sparse.random_array((20, 4000), density=0.01, format="csr", rng=rng)
    for model in (*models, copied):
        model.learn_many(wider, y)
        for i, x in enumerate(
            ({7: 1.0, 3999: -2.0}, {4000: 1.0, 9000: 1.0}, {9000: 1.0}, {3: 0.5})
        ):
            model.predict_one(x)
            model.learn_one(x, bool(i % 2))
        assert model.feature_names == [*range(4001), 9000]
        assert model._schema.index == {name: i for i, name in enumerate(model.feature_names)}
        assert not model._schema.is_range
        assert model.weights == models[0].weights


@given(st.binary(max_size=40), st.integers(-(2**63) + 1, 2**63 - 1))
@settings(deadline=None)
def test_hashes_are_those_of_zlib(content, number):
    assert crc32(np.frombuffer(content, np.uint8)) == zlib.crc32(content)
    text = np.zeros(24, np.uint8)
    assert text[_digits(number, text) :].tobytes().decode() == repr(number)


def listed(columns, given):
    """Do as `list_event` does."""
    found = {}
    for column, value in zip(columns, given, strict=True):
        with np.errstate(over="ignore"):
            value = np.float32(value)
        if not np.isfinite(value):
            return None
        if column >= 0 and value != 0.0:
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
    n = list_event(columns, given, len(event), out, values)
    if expected is None:
        assert n == -1
    else:
        assert list(zip(out[:n].tolist(), values[:n].tolist(), strict=True)) == expected


@compiled_with_python
def _found(head, kinds, names, columns):
    for i in range(names.size):
        columns[i] = column_of(head, names[i], hash_of(names[i]), kinds)


def columns_in(table, names):
    columns = np.zeros(len(names), np.int64)
    addresses = np.array([id(name) for name in names], np.int64)
    _found(address_of(table.head), py.kinds(), addresses, columns)
    return columns.tolist()


@given(st.lists(PLAIN_NAMES, unique=True, max_size=50), st.integers(1, 6), st.integers(0, 40))
@settings(deadline=None)
def test_a_vocabulary_is_a_dict(names, step, shift):
    # Hashes of ints are themselves, so that these fall on the same slots.
    crowd = [i << shift for i in range(1, 400, step)]
    names = list(dict.fromkeys([*names, *crowd]))
    known = []
    table = Vocabulary(known)
    for start in range(0, len(names), 61):
        known += names[start : start + 61]
        table.update(more=start % 7)
        # Equal names of other objects.
        copies = [ast.literal_eval(repr(name)) for name in names]
        index = {name: i for i, name in enumerate(known)}
        assert columns_in(table, copies) == [index.get(name, -1) for name in names]
