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

SIMPLE_NAMES = st.one_of(st.text(max_size=3), st.integers(-(2**63), 2**63 - 1))


def test_names_that_are_listed_by_two_threads():
    rows = scipy.sparse.csr_matrix(([1.0, 1.0], ([0, 1], [5, 6])), shape=(2, 300_000))
    for _ in range(3):
        model = SVMSGDClassifier(t0=10.0, sparse=True)
        model.learn_many(rows, [True, False])
        calls = (
            lambda model=model: model.schema.names,
            lambda model=model: model.schema.index,
            lambda model=model: model.learn_one({5: 1.0, "new": 1.0}, True),
        )
        threads = [threading.Thread(target=call) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert model.feature_names == [*range(300_000), "new"]
        assert model.schema.index["new"] == 300_000 and len(model.schema.index) == 300_001


def test_names_that_come_while_the_table_gets_larger(monkeypatch):
    """A signal handler or a finalizer may use the model between any two calls."""
    names = list(range(10))
    found = Vocabulary(names)
    assert found.update() and found.update(0)
    names += range(10, 1300)
    zeros, left = np.zeros, [None]

    def interrupting(*arguments):
        if left:
            left.clear()
            names.extend(range(1300, 4000))
            assert found.update()
        return zeros(*arguments)

    monkeypatch.setattr(vocabulary.np, "zeros", interrupting)
    assert found.update()
    monkeypatch.undo()
    # Those of the interruption: the smaller ones of the outer call are not used.
    assert 2 * found.n_slots > 3 * 4000 and len(found._slots[0]) == found.n_slots
    assert found.n_names == 4000 and columns_in(found, names) == names


def test_an_interruption_leaves_the_table_of_names_whole(monkeypatch):
    """And names that come before it is tried again are not lost."""
    names = list(range(10))
    found = Vocabulary(names)
    found.update()
    names += range(10, 1300)
    before = found.n_slots

    def interrupted(*arguments):
        raise KeyboardInterrupt

    for place in ("address_of", "_move", "_add_missing_names"):
        with monkeypatch.context() as patch:
            patch.setattr(vocabulary, place, interrupted)
            with pytest.raises(KeyboardInterrupt):
                found.update()
        assert columns_in(found, names[:10]) == list(range(10))
        names.append(f"after {place}")
    assert found.update() and found.n_slots > before
    assert columns_in(found, names) == list(range(1303))


def test_a_name_that_only_python_can_compare_is_not_taken():
    for odd in (Odd("odd"), 2**63, ("a", 1), True, 1.5):
        names = ["a", odd, "b"]
        found = Vocabulary(names)
        assert not found.update() and found.n_names == 1
        assert columns_in(found, ["a", "b"]) == [0, -1]


class Odd(str):
    """A name that runs code of its own."""

    def __hash__(self):
        return hash(str(self))

    def __eq__(self, other):
        return str(self) == other


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", [Odd("odd"), 1.5, ("a", 1), 2**63], ids=repr)
def test_a_name_of_another_type_closes_the_way(sparse, name):
    model = SVMSGDClassifier(sparse=sparse, t0=10.0)
    for i in range(4):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    assert model.fast_path.is_open and model.schema.are_simple
    model.learn_one({"a": 1.0, name: 1.0}, True)
    assert not model.fast_path.is_open and not model.schema.are_simple
    assert model.n_examples == 5 and model.feature_names == ["a", "b", name]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_name_of_another_type_that_a_copy_learnt_is_its_own(sparse):
    model = SVMSGDClassifier(sparse=sparse, t0=10.0)
    for i in range(4):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    TrackingMonitor(copy.copy(model)).learn_one({"a": 1.0, Odd("odd"): 1.0}, True)
    for _ in range(3):
        model.learn_one({"a": 1.0, "b": 1.0}, True)
        assert model.fast_path.is_open and model.feature_names == ["a", "b"]
    assert model.n_examples == 7


@pytest.mark.parametrize("sparse", [False, True])
def test_names_of_arrays_are_listed_when_somebody_asks(sparse):
    rng = np.random.default_rng(0)
    rows = scipy.sparse.random_array((20, 3000), density=0.01, format="csr", rng=rng)
    y = rng.random(20) > 0.5
    models = [SVMSGDClassifier(sparse=sparse, t0=10.0) for _ in range(2)]
    models[0].learn_many(rows, y)
    assert len(models[0].schema._names) == 0 and len(models[0].schema) == 3000
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
        assert model.schema.index == {name: i for i, name in enumerate(model.feature_names)}
        assert not model.schema.is_range
        assert model.weights == models[0].weights


@compiled_with_python
def _found(head, kinds, names, columns):
    for i in range(names.size):
        columns[i] = column_of(head, names[i], hash_of(names[i]), kinds)


def columns_in(table, names):
    columns = np.zeros(len(names), np.int64)
    addresses = np.array([id(name) for name in names], np.int64)
    _found(address_of(table.head), py.new_kinds(), addresses, columns)
    return columns.tolist()


@given(st.lists(SIMPLE_NAMES, unique=True, max_size=50), st.integers(1, 6), st.integers(0, 40))
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
    empty = np.flatnonzero(table._slots[0][:, 1] == 0)
    assert np.diff(empty).max() < 100
