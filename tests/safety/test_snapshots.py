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
from tests.safety.programs import run
from tests.slow import slow, slow_but


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


HIDDEN = """
import sys
import streamsvm
from streamsvm.errors import FeatureError

class Hiding(dict):
    def __iter__(self):
        return (name for name in super().__iter__() if not name.startswith("_"))

model = getattr(streamsvm, sys.argv[1])(sparse=True)
for i in range(20):
    model.learn_one({"a": 1.0 + i, "b": 2.0, "c": i % 2}, i % 2)
event = Hiding({f"_{i}": 1.0 for i in range(300)}, a=1.0, b=2.0)
before, n = model.predict_one({"a": 1.0}), model.n_examples
for i in range(200):
    for call in (lambda: model.predict_one(event), lambda: model.learn_one(event, i % 2)):
        try:
            call()
        except FeatureError as error:
            assert "Hiding" in str(error) and "302" in str(error), error
        else:
            raise AssertionError("an event that contradicts itself was taken")
assert model.feature_names == ["a", "b", "c"] and model.n_examples == n
assert model.predict_one({"a": 1.0}) == before
"""


@pytest.mark.parametrize(
    "name",
    slow_but(["LASVMClassifier", "LaRankClassifier", "SVMSGDClassifier"], "SVMSGDClassifier"),
)
def test_a_dict_that_hides_names_is_refused(name):
    run(HIDDEN, name)


CHANGED_BY_A_THREAD = """
import sys, threading, time
import streamsvm
from streamsvm.errors import FeatureError

sys.setswitchinterval(1e-5)
model = getattr(streamsvm, sys.argv[1])(sparse=True)
names = [f"f{i}" for i in range(400)]
for i in range(20):
    model.learn_one({name: float(i % 3) for name in names}, i % 2)
event, stop = {"a": 1.0}, threading.Event()

def change():
    r = 0
    while not stop.is_set():
        event.update(dict.fromkeys(names[: 200 + r % 200], 1.0))
        event.pop("f7", 0)
        event.clear()
        event["a"] = 1.0
        r += 1

thread = threading.Thread(target=change, daemon=True)
thread.start()
began, n = time.monotonic(), model.n_examples
while time.monotonic() - began < 2.0:
    # A snapshot is a dict as good as any other: nothing is refused.
    model.learn_one(event, n % 2)
    model.predict_one(event)
    n += 1
stop.set()
thread.join()
assert model.n_examples == n and len(model.feature_names) == 401
"""


@pytest.mark.parametrize(
    "name", slow_but(["LASVMClassifier", "SVMSGDClassifier"], "SVMSGDClassifier")
)
def test_a_dict_that_another_thread_changes_is_read_at_one_moment(name):
    run(CHANGED_BY_A_THREAD, name)


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
