"""The scaler with many names, of which each event has a few."""

import random

import numpy as np
import pyarrow as pa

from streamsvm import StandardScaler, load, save
from streamsvm.features import names
from tests.odd_events import GeneralScaler


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
