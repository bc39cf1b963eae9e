"""Events that change while they are read, or that contradict themselves."""

from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict
from types import MappingProxyType

import numpy as np
import pytest

from streamsvm import LaRankClassifier, LASVMClassifier, StandardScaler, SVMSGDClassifier
from streamsvm.errors import FeatureError
from streamsvm.features.events import snapshot
from streamsvm.features.packing import single
from streamsvm.features.schema import Schema
from streamsvm.support.rows import LARGEST
from tests.slow import slow


class Hiding(dict):
    """A dict whose iteration hides names that its values include."""

    def __iter__(self):
        return (name for name in super().__iter__() if not name.startswith("_"))


class Lying(dict):
    """A dict whose length is not that of its items."""

    def __len__(self):
        return 1


class Swapping(dict):
    """A dict whose items have other names than its iteration."""

    def items(self):
        return [(f"other {name}", value) for name, value in super().items()]


PLAIN = {"a": 1.0, "b": 2.0}
MODELS = [
    lambda: SVMSGDClassifier(t0=10.0, sparse=False),
    lambda: SVMSGDClassifier(t0=10.0, sparse=True),
    lambda: SVMSGDClassifier(t0=10.0, hashing=64),
    lambda: LASVMClassifier(sparse=False, seed=1),
    lambda: LASVMClassifier(sparse=True, seed=1),
    pytest.param(lambda: LaRankClassifier(sparse=True, seed=1), marks=slow),
]


@pytest.mark.parametrize("kind", [Hiding, Lying, Swapping])
def test_events_that_contradict_themselves_are_refused(kind):
    event = kind(_hidden=3.0, **PLAIN)
    with pytest.raises(FeatureError, match=kind.__name__):
        snapshot(event)
    scaler = StandardScaler()
    for call in (scaler.learn_one, scaler.transform_one):
        with pytest.raises(FeatureError, match=kind.__name__):
            call(event)
    assert scaler.statistics == {}
    schema = Schema(["a", "b", "_hidden"])
    for call in (schema.row, schema.sparse_row, schema.known_row, schema.checked):
        with pytest.raises(FeatureError, match=kind.__name__):
            call(event)
    wide = kind(dict.fromkeys([f"_{i}" for i in range(300)], 1.0), **PLAIN)
    for new in MODELS[:3]:
        model = new()
        for i in range(20):
            model.learn_one({"a": 1.0 + i, "b": 2.0}, i % 2)
        for call in (model.predict_one, lambda x, model=model: model.learn_one(x, 1)):
            with pytest.raises(FeatureError, match=kind.__name__):
                call(wide)
        assert model.feature_names in (["a", "b"], []) and model.n_examples == 20


@pytest.mark.parametrize("new", MODELS)
def test_mappings_of_all_kinds_are_learnt_as_dicts(new):
    kinds = [
        lambda d: d, Counter, OrderedDict, UserDict, ChainMap, MappingProxyType,
        lambda d: defaultdict(float, d), type("Sub", (dict,), {}),
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    models = [new() for _ in range(2)]
    for i in range(60):
        event = {"a": float(rng.normal()), "b": float(rng.normal()), f"c{i % 5}": 1.0}
        label = event["a"] > 0.0
        for model, x in zip(models, (event, kinds[i % len(kinds)](event)), strict=True):
            model.learn_one(x, label)
            assert model.predict_one(x) == model.predict_one(event)
    assert models[0].feature_names == models[1].feature_names
    x = {"a": 0.5, "b": 1.0}
    assert models[0].decision_function_one(x) == models[1].decision_function_one(x)


def test_an_event_whose_items_cannot_be_read():
    class Broken(UserDict):
        def __getitem__(self, name):
            raise KeyError(name)

    with pytest.raises(FeatureError, match="Broken"):
        snapshot(Broken(a=1.0))


# Rounded to single precision it is the largest number there is.
ABOVE = 3.4028235e38


@pytest.mark.parametrize("value", [ABOVE, -ABOVE])
@pytest.mark.parametrize("new", MODELS[:3])
def test_what_is_above_the_largest_number_is_refused_by_every_path(new, value):
    model = new()
    events = [({"a": 1.0, "b": 1.0}, True), ({"a": -1.0, "b": 1.0}, False)] * 3
    for x, y in events:
        model.learn_one(x, y)
    n = model.n_examples
    bad, batch = {"a": value, "b": 1.0}, np.array([[1.0, 1.0], [value, 1.0]])
    for w in (1.0, 0.5):
        with pytest.raises(FeatureError, match="'a'"):
            model.learn_one(bad, True, w)
    with pytest.raises(FeatureError, match="'a'"):
        model.predict_one(bad)
    import pandas as pd

    with pytest.raises(FeatureError, match="'a'"):
        model.learn_many(pd.DataFrame(batch, columns=["a", "b"]), [True, False])
    assert model.n_examples == n
    model.learn_one({"a": LARGEST, "b": 1.0}, True)
    assert model.n_examples == n + 1


def test_single_precision_of_what_is_above_the_largest_number():
    values = np.array([[1.0, LARGEST, ABOVE], [-ABOVE, 1e300, -LARGEST]])
    found = single(values)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found[0], np.float32([1.0, LARGEST, np.inf]))
    np.testing.assert_array_equal(found[1], np.float32([-np.inf, np.inf, -LARGEST]))
    assert single(found) is found
