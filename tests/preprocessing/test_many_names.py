"""The scaler with many names, of which each event has a few."""

import random

import numpy as np
import pyarrow as pa
import pytest

from streamsvm import StandardScaler, load, save
from streamsvm.features import names
from streamsvm.native_events import is_on
from tests.preprocessing.test_standard_scaler import GeneralPath


def zipf_events(n, n_names, seed=0):
    """Return events of a few words, most of which are rare."""
    rng = random.Random(seed)
    return [
        {f"w{int(50 * rng.paretovariate(0.5)) % n_names}": rng.gauss(3.0, 2.0) for _ in range(14)}
        for _ in range(n)
    ]


def test_with_thousands_of_names_events_are_learnt_as_by_the_general_path_and_in_batches(tmp_path):
    fast, general, many = StandardScaler(), GeneralPath(), StandardScaler()
    events = zipf_events(1500, 6000)
    n_general = 0
    for i, x in enumerate(events):
        if fast._event_learn(x) is None:
            n_general += 1
            fast.learn_one(x)
        general.learn_one(x)
        assert fast.transform_one(x) == general.transform_one(x)
        if i == 1000:
            save(fast, tmp_path / "scaler")
            fast = load(tmp_path / "scaler")
    learnt = fast.schema.names
    assert len(learnt) > 2500 and learnt == general.schema.names
    np.testing.assert_array_equal(fast._statistics, general._statistics)
    # Where there was no room, at ever larger steps, and after loading.
    assert n_general < 60 or not is_on()
    table = pa.table({n: [x.get(n) for x in events] for n in learnt})
    many.learn_many(table)
    np.testing.assert_array_equal(fast._statistics, many._statistics)
    assert fast.statistics == many.statistics


@pytest.mark.skipif(not is_on(), reason="native events are off")
def test_the_fast_path_stays_when_there_is_no_room_for_new_names():
    scaler = StandardScaler()
    scaler.learn_one({"a": 1.0})
    path, wide = scaler._fast_path, {f"n{i}": 1.0 for i in range(20)}
    assert path.learn(wide) is None and list(scaler.statistics) == ["a"]
    scaler.learn_one(wide)
    assert scaler._fast_path is path and path.learn({"b": 2.0} | wide) is True
    # A batch has new names: they are added to the path with the next event.
    scaler.learn_many(pa.table({"c": [1.0]}))
    assert not path.is_bound_to(scaler._statistics) and path.learn(wide) is None
    scaler.learn_one(wide)
    assert path.is_bound_to(scaler._statistics) and path.learn({"c": 2.0}) is True
    path.check(scaler._statistics, scaler._generation.now)


def test_names_that_do_not_fit_are_left_out_by_all_paths(monkeypatch):
    long = "n" * 1001
    scalers = fast, general = StandardScaler(), GeneralPath()
    for scaler in scalers:
        for i in range(20):
            scaler.learn_one({"a": float(i), long: 1.0})
            assert scaler.transform_one({"a": 1.0, long: 1.0})[long] == 0.0
    assert list(fast.statistics) == list(general.statistics) == ["a"]
    monkeypatch.setattr(names, "MOST_BYTES", 6_000)
    scalers = fast, general = StandardScaler(), GeneralPath()
    for scaler in scalers:
        for i in range(60):
            scaler.learn_one({"a": float(i), f"new {i}": 1.0})
    assert fast.statistics == general.statistics
    assert 5 < len(fast.statistics) < 50 and fast.statistics["a"][0] == 60
