"""Names by column: the table for compiled code, and names that are listed when asked for."""

import ast
import copy
import pickle
import threading

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import SVMSGDClassifier, TrackingMonitor
from streamsvm._compile import address_of, compiled_with_python
from streamsvm.native_events import python_objects as py
from streamsvm.native_events import vocabulary
from streamsvm.native_events.vocabulary import Vocabulary, column_of, hash_of
from tests.native_events.test_event_rows import PLAIN_NAMES


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


@pytest.mark.parametrize("calls", [0, 1, 2])
def test_an_interruption_leaves_the_table_of_names_whole(monkeypatch, calls):
    """And names that come before it is tried again are not lost."""
    names = list(range(10))
    found = Vocabulary(names)
    found.update()
    # All are in the table, and there is room for some, but not for 256.
    names += range(10, 1300)
    found.update(0)
    before = found.n_slots
    assert 3 * (len(names) + 256) > 2 * before
    left = iter(range(calls))

    def interrupted(array):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return address_of(array)

    names += ["new", "newer"]
    monkeypatch.setattr(vocabulary, "address_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        found.update()
    monkeypatch.undo()
    assert (found.n_slots > before) == (calls == 2)
    assert columns_in(found, names[:1300]) == list(range(1300))
    names += ["newest"]
    found.update(0)
    assert columns_in(found, names) == list(range(1303))
    found.update()
    assert columns_in(found, names) == list(range(1303)) and found.n_slots > before


class Odd(str):
    """A name that runs code of its own."""

    def __hash__(self):
        return hash(str(self))

    def __eq__(self, other):
        return str(self) == other


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", [Odd("odd"), 1.5, ("a", 1.5)], ids=repr)
def test_a_name_of_another_type_closes_the_way(sparse, name):
    model = SVMSGDClassifier(sparse=sparse, t0=10.0)
    for i in range(4):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    assert model._fast_path.is_open and model._schema.are_plain
    model.learn_one({"a": 1.0, name: 1.0}, True)
    assert not model._fast_path.is_open and not model._schema.are_plain
    assert model.n_examples == 5 and model.feature_names == ["a", "b", name]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_name_of_another_type_that_a_copy_learnt_closes_the_way(sparse):
    """They share their names."""
    model = SVMSGDClassifier(sparse=sparse, t0=10.0)
    for i in range(4):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    TrackingMonitor(copy.copy(model)).learn_one({"a": 1.0, Odd("odd"): 1.0}, True)
    for _ in range(3):
        model.learn_one({"a": 1.0, "b": 1.0}, True)
        assert not model._fast_path.is_open and not model._schema.are_plain
    assert model.n_examples == 7


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


def test_ids_of_many_fields_are_found_at_once():
    names = [(field << 32) | value for field in range(8) for value in range(4000)]
    table = Vocabulary(names)
    table.update()
    assert columns_in(table, names) == list(range(len(names)))
    empty = np.flatnonzero(table._kept[-1][:, 1] == 0)
    assert np.diff(empty).max() < 100
