"""Copies, of whatever kind, share nothing with the original that changes in place."""

import copy
import threading

import numpy as np
import pytest

from streamsvm import LASVMClassifier, SVMSGDClassifier
from streamsvm.support.writable import own_copies


def stream(n, seed=0):
    rng = np.random.default_rng(seed)
    for i, row in enumerate(rng.normal(size=(n, 2)).tolist()):
        yield {"a": row[0], "b": row[1], f"c{i % 9}": 1.0}, row[0] * row[1] > 0.0


def learn(model, n, seed):
    for x, y in stream(n, seed):
        model.learn_one(x, y)


@pytest.mark.parametrize("cls", [SVMSGDClassifier, LASVMClassifier])
def test_two_copies_that_two_threads_use(cls):
    """No name gets two columns."""
    model = cls(sparse=True)
    learn(model, 20, 0)
    copies = [model, copy.copy(model)]

    def work(own):
        for i in range(300):
            own.learn_one({f"name {i + k}": 1.0 for k in range(20)}, bool(i % 2))

    threads = [threading.Thread(target=work, args=(own,)) for own in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for own in copies:
        assert len(own.feature_names) == len(set(own.feature_names)) == 11 + 319
        assert own.n_examples == 320
    assert copies[0].feature_names == copies[1].feature_names


class Label:
    """Equal to itself only."""


def test_labels_are_shared_with_shallow_copies():
    labels = Label(), Label()
    model = SVMSGDClassifier(t0=10.0)
    for i in range(6):
        model.learn_one({"a": float(i), "b": 1.0}, labels[i % 2])
    copied = copy.copy(model)
    assert copied.predict_one({"a": 1.0}) in labels
    copied.learn_one({"a": 1.0}, labels[0])
    assert copied.classes == model.classes


def test_own_copies_keep_what_is_one_as_one():
    array = np.arange(3.0)
    contents = {"a": array, "b": (array, [array, {"c": array}], 5), "d": (1, "x"), "e": Label()}
    found = own_copies(contents)
    assert found["a"] is not array and found["b"][0] is found["a"]
    assert found["b"][1][0] is found["b"][1][1]["c"] is found["a"]
    assert found["d"] is contents["d"] and found["e"] is contents["e"]
    found["a"][0] = 7.0
    assert array[0] == 0.0
