import contextlib
import copy
import pickle
import random
import sys
import threading
from collections import Counter, OrderedDict, UserDict
from types import MappingProxyType

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import compose, datasets, preprocessing

from streamsvm import StandardScaler, SVMSGDClassifier, load, save
from streamsvm.errors import FeatureError
from streamsvm.features import names
from streamsvm.support.rows import LARGEST
from tests.odd_events import NUMBERS, ODD, ODD_NAMES, PLAIN_NAMES, GeneralScaler


def test_event_by_event_it_is_rivers():
    ours, rivers = StandardScaler(), preprocessing.StandardScaler()
    for i, (x, _) in enumerate(datasets.Phishing().take(300)):
        x = {k: v for j, (k, v) in enumerate(x.items()) if (i + j) % 5}
        ours.learn_one(x)
        rivers.learn_one(x)
        assert ours.transform_one(x) == pytest.approx(rivers.transform_one(x), abs=1e-12)


def test_features_of_rivers_one_hot_encoder_pass_unscaled(tmp_path):
    texts = compose.Select("colour", "job") | preprocessing.OneHotEncoder()
    encoder = texts + compose.Select("user_age", "t=x")
    scaler = StandardScaler(one_hot="^(colour|job)_")
    for i in range(10):
        x = {"colour": "rb"[i % 2], "job": "x", "user_age": float(i), "t=x": 1.0}
        found = encoder.transform_one(x)
        scaler.learn_one(found)
        scaled = scaler.transform_one(found)
        assert [v for name, v in scaled.items() if name != "user_age"] == [1, 1, 1]
    assert list(scaler.statistics) == ["user_age"] and abs(scaled["user_age"]) < 2.0
    rows = pd.DataFrame([dict.fromkeys(("colour_r", "job_x", "user_age"), 1.0)] * 2)
    assert scaler.transform_many(rows)["job_x"].tolist() == [1.0, 1.0]
    assert scaler.clone().one_hot == pickle.loads(pickle.dumps(scaler)).one_hot == scaler.one_hot
    assert repr(scaler) == "StandardScaler(one_hot='^(colour|job)_')"
    save(scaler | SVMSGDClassifier(), tmp_path / "m.svm")
    again = load(tmp_path / "m.svm")["StandardScaler"]
    assert again.transform_one(found) == scaled


EVENTS = st.lists(
    st.builds(
        lambda kind, content: kind(content),
        st.sampled_from([dict, dict, dict, Counter, OrderedDict, MappingProxyType, UserDict]),
        st.dictionaries(
            st.one_of(PLAIN_NAMES, st.sampled_from(["a", "b", "c", "t=x"]), ODD_NAMES),
            st.one_of(NUMBERS, NUMBERS, ODD),
            max_size=5,
        ),
    ),
    min_size=1,
    max_size=25,
)


def results_of(scaler, events, batch):
    """Return the results of a stream: scaled events, and errors."""
    found = []
    for i, x in enumerate(events):
        calls = (scaler.transform_one, scaler.learn_one, scaler.transform_one)
        if i == batch:
            scaler.learn_many(pa.table({"a": [1.0, 2.5], "new": [0.0, 1.0]}))
        for call in calls:
            try:
                found.append(call(x))
            except (FeatureError, TypeError, ValueError, OverflowError) as error:
                found.append((type(error), str(error)))
    return found


VALUES = st.sampled_from([0.0, 1.0, 1.5, -2.0, 1e3, -1e6, 1e30])
LIMITS = st.sampled_from([{}, {}, {"clip": 2.0}, {"clip": None}, {"clip": 3.0, "reject": 50.0}])


@given(events=EVENTS, values=st.lists(VALUES, max_size=60), batch=st.integers(0, 45), limits=LIMITS)
@settings(max_examples=200, deadline=None)
def test_events_are_learnt_and_scaled_as_by_the_general_path(events, values, batch, limits):
    fast, general = StandardScaler(**limits), GeneralScaler(**limits)
    usual = [{"a": 0.1 * (i % 7), "b": 1} for i in range(30 if values else 1)]
    events = [*usual, *events, *({"a": value} for value in values)]
    assert results_of(fast, events, batch) == results_of(general, events, batch)
    assert fast.schema.names == general.schema.names
    np.testing.assert_array_equal(fast._statistics, general._statistics)


@pytest.mark.parametrize(
    "value", [1e39, -3.5e38, 10**40, np.float64(1e300), np.nextafter(LARGEST, 4e38)]
)
def test_values_beyond_single_precision_are_refused_by_all_paths(value):
    for cls in (StandardScaler, GeneralScaler):
        scaler = cls()
        scaler.learn_one({"a": 1.0})
        scaler.learn_one({"a": LARGEST})
        before = scaler.statistics
        for call in (scaler.learn_one, scaler.transform_one):
            with pytest.raises(FeatureError, match="'a'"):
                call({"a": value})
        with pytest.raises(FeatureError, match="'a'"):
            scaler.learn_many(pa.table({"a": [1.0, float(value)]}))
        assert scaler.statistics == before


def test_an_interruption_while_features_come(monkeypatch, tmp_path):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    wide = {f"n{i}": 2.0 for i in range(1000)}
    for ask in ("transform", "statistics", "save", "copy"):
        scaler = StandardScaler()
        for i in range(5):
            scaler.learn_one({"a": float(i), "b": 1.0 * i})
        with monkeypatch.context() as patch:
            patch.setattr(np, "pad", interrupted)
            with pytest.raises(KeyboardInterrupt):
                scaler.learn_one(wide | {"a": 1.0})
        if ask == "transform":
            assert set(scaler.transform_one(wide).values()) == {0.0}
        elif ask == "statistics":
            assert scaler.statistics["n7"] == (0, 0.0, 0.0)
        elif ask == "save":
            save(scaler, tmp_path / "scaler")
            scaler = load(tmp_path / "scaler")
        else:
            scaler = copy.copy(scaler)
        for i in range(20):
            scaler.learn_one({"a": 1.0} | dict.fromkeys(wide, float(i)))
        assert scaler.statistics["a"][0] == 25 and scaler.statistics["n999"][0] == 20


def test_rivers_unions_take_it():
    scaler = StandardScaler()
    scaler.learn_one({"a": 1.0})
    union = scaler + preprocessing.MinMaxScaler()
    union.learn_one({"a": 3.0})
    assert scaler.clone(include_attributes=True).statistics == scaler.statistics
    assert scaler.clone().statistics == {}


def test_scaled_events_are_their_owners_alone():
    scaler = StandardScaler()
    names, values = ["".join(["name ", str(i)]) for i in range(20)], [0.5 + i for i in range(20)]
    events = [dict(zip(names, values, strict=True)), {names[3]: values[3]}, {names[0]: "bad"}]

    def work():
        for x in events:
            for call in (scaler.learn_one, scaler.transform_one):
                with contextlib.suppress(FeatureError):
                    made = call(x)
        del made

    work()
    things = (*names, *values, *events, None)
    before = [sys.getrefcount(thing) for thing in things[:-1]]
    for _ in range(50):
        work()
    assert [sys.getrefcount(thing) for thing in things[:-1]] == before
    one, other = scaler.transform_one(events[0]), scaler.transform_one(events[0])
    assert one == other and one is not other and sys.getrefcount(one) == 2
    # Features are the schema's own objects, so that learners behind know them at once.
    assert all(a is b for a, b in zip(one, scaler.schema.names, strict=True))


def test_threads_learn_each_event_once():
    scaler = StandardScaler()
    table = pa.table({"a": [1.0] * 50, "late": [2.0] * 50})
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def work(k):
        for i in range(2000):
            scaler.learn_one({"a": 1.0, "b": 2.0})
            assert scaler.transform_one({"a": 1.0, "b": 2.0}).keys() == {"a", "b"}
            if i % 200 == 50:
                scaler.learn_many(table)
            if i % 500 == k:
                scaler.learn_one({f"n{k} {i}": 1.0})

    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    counts = {name: figures[0] for name, figures in scaler.statistics.items()}
    assert counts["a"] == 4 * (2000 + 10 * 50) and counts["b"] == 4 * 2000
    assert counts["late"] == 4 * 10 * 50 and len(counts) == 3 + 4 * 4


def test_a_merged_scaler_has_the_statistics_of_the_rows_of_both():
    x = np.random.default_rng(0).normal(3.0, 2.0, (300, 2))
    whole, first, second = (StandardScaler(clip=None) for _ in range(3))
    for scaler, rows in ((whole, x), (first, x[:50]), (second, x[50:])):
        scaler.learn_many(rows)
    first.merge(second)
    for name, (n, mean, variance) in whole.statistics.items():
        assert first.statistics[name] == pytest.approx((n, mean, variance), rel=1e-9)


def zipf_events(n, n_names, seed=0):
    """Return events of a few words, most of which are rare."""
    rng = random.Random(seed)
    return [
        {f"w{int(50 * rng.paretovariate(0.5)) % n_names}": rng.gauss(3.0, 2.0) for _ in range(14)}
        for _ in range(n)
    ]


def test_with_thousands_of_names_events_are_learnt_as_by_the_general_path_and_in_batches(tmp_path):
    fast, general, many = StandardScaler(), GeneralScaler(), StandardScaler()
    events = zipf_events(1500, 6000)
    for i, x in enumerate(events):
        fast.learn_one(x)
        general.learn_one(x)
        assert fast.transform_one(x) == general.transform_one(x)
        if i == 1000:
            save(fast, tmp_path / "scaler")
            fast = load(tmp_path / "scaler")
    learnt = fast.schema.names
    assert len(learnt) > 2500 and learnt == general.schema.names
    np.testing.assert_array_equal(fast._statistics, general._statistics)
    table = pa.table({n: [x.get(n) for x in events] for n in learnt})
    many.learn_many(table)
    np.testing.assert_array_equal(fast._statistics, many._statistics)
    assert fast.statistics == many.statistics


def test_names_that_do_not_fit_are_left_out_by_all_paths(monkeypatch):
    long = "n" * 1001
    scalers = fast, general = StandardScaler(), GeneralScaler()
    for scaler in scalers:
        for i in range(20):
            scaler.learn_one({"a": float(i), long: 1.0})
            assert scaler.transform_one({"a": 1.0, long: 1.0})[long] == 0.0
    assert list(fast.statistics) == list(general.statistics) == ["a"]
    monkeypatch.setattr(names, "MOST_BYTES", 6_000)
    scalers = fast, general = StandardScaler(), GeneralScaler()
    for scaler in scalers:
        for i in range(60):
            scaler.learn_one({"a": float(i), f"new {i}": 1.0})
    assert fast.statistics == general.statistics
    assert 5 < len(fast.statistics) < 50 and fast.statistics["a"][0] == 60
