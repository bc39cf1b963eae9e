"""Pickles that lend their memory, as Dask's and joblib's do: models do not write to it."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm import (
    LaRankClassifier,
    LASVMClassifier,
    SGDQNClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
)
from streamsvm.support.writable import writable

MODELS = {
    "LASVM": LASVMClassifier,
    "LASVM, sparse": lambda: LASVMClassifier(sparse=True),
    "tracking": TrackingSVMClassifier,
    "LaRank": LaRankClassifier,
    "SGD": SVMSGDClassifier,
    "SGD, rate given": lambda: SVMSGDClassifier(t0=100.0),
    "SGD-QN": SGDQNClassifier,
    "pipeline": lambda: StandardScaler() | LASVMClassifier(),
    "monitored": lambda: TrackingMonitor(LASVMClassifier(), sample=20),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_copies_go_on_as_the_model_and_write_to_nobodys_memory(make):
    rng = np.random.default_rng(0)
    events = [(dict(enumerate(x)), x[0] * x[1] > 0.0) for x in rng.normal(size=(200, 3)).tolist()]
    model, buffers = make(), []
    for x, y in events[:100]:
        model.learn_one(x, y)
    data = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    lent = [bytes(buffer.raw()) for buffer in buffers]
    before = [bytearray(part) for part in lent]
    other = pickle.loads(data, buffers=lent)
    assert lent
    for x, y in events[100:]:
        assert other.predict_one(x) == model.predict_one(x)
        for m in (model, other):
            m.learn_one(x, y)
    assert all(part == old for part, old in zip(lent, before, strict=True))


ARRAYS = st.recursive(
    st.tuples(st.booleans(), st.integers(0, 5)),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
)


@given(st.dictionaries(st.text(max_size=3), st.integers() | ARRAYS, max_size=4))
def test_what_is_owned_is_equal_and_may_be_written_to(contents):
    def filled(part):
        if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], bool):
            array = np.arange(part[1])
            array.flags.writeable = part[0]
            return array
        return type(part)(map(filled, part)) if isinstance(part, (list, tuple)) else part

    def compare(old, new):
        assert type(old) is type(new)
        if isinstance(old, np.ndarray):
            assert new.flags.writeable and (new is old) == old.flags.writeable
            np.testing.assert_array_equal(old, new)
        elif isinstance(old, (list, tuple)):
            assert len(old) == len(new)
            for pair in zip(old, new, strict=True):
                compare(*pair)
        else:
            assert old == new

    given_ = {name: filled(part) for name, part in contents.items()}
    found = writable(given_)
    assert list(found) == list(given_)
    for name, part in given_.items():
        compare(part, found[name])


def test_an_array_at_two_places_remains_one():
    array = np.zeros(3)
    array.flags.writeable = False
    found = writable({"a": array, "b": (1, [array])})
    assert found["a"] is found["b"][1][0] is not array
