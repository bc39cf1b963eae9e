"""With a window the last examples of a rare class stay, however the stream is learnt."""

import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamsvm
from streamsvm import LaRankClassifier, LASVMClassifier, kernels
from tests.reference.slow_window import SlowWindow

RBF, WINDOW = kernels.RBF(gamma=0.5), 25
MAKE = {
    "lasvm": (lambda: LASVMClassifier(RBF, window=WINDOW), 2),
    "within a budget": (lambda: LASVMClassifier(RBF, window=WINDOW, max_support_vectors=9), 2),
    "lasvm of several": (lambda: LASVMClassifier(RBF, window=WINDOW), 4),
    "larank": (lambda: LaRankClassifier(RBF, window=WINDOW, seed=1), 4),
}


def stream(seed, n, n_classes, share=0.04):
    """Return rows and classes: all but the first two are rare, and of two the second."""
    rng = np.random.default_rng(seed)
    frequent = 0 if n_classes == 2 else rng.integers(0, 2, n)
    y = np.where(rng.random(n) < share, rng.integers(n_classes // 2, n_classes, n), frequent)
    centres = rng.normal(size=(n_classes, 2))
    return (centres[y] + 0.8 * rng.normal(size=(n, 2))).astype(np.float32), y


def again(model):
    """Return the model as read from a file."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return streamsvm.load(Path(folder) / "model")


@pytest.mark.parametrize("name", MAKE)
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.lists(st.integers(1, 60), min_size=2, max_size=4))
def test_events_batches_files_and_copies_hold_the_same(name, seed, sizes):
    make, n_classes = MAKE[name]
    x, y = stream(seed, sum(sizes), n_classes)
    one, many, loaded, copied = (make() for _ in range(4))
    held, start = SlowWindow(WINDOW), 0
    for size in sizes:
        stop = start + size
        for i in range(start, stop):
            one.learn_one({0: x[i, 0], 1: x[i, 1]}, int(y[i]))
            held.note(y[i], i + 1, n_classes)
        for model in (many, loaded, copied):
            model.learn_many(x[start:stop], y[start:stop])
        loaded, copied, start = again(loaded), pickle.loads(pickle.dumps(copied)), stop
        numbers = np.abs(one.kept_numbers()).tolist()
        assert all(held.holds(y[i - 1], i, stop) for i in numbers)
        for other in (many, loaded, copied):
            assert sorted(other.kept_numbers()) == sorted(one.kept_numbers())
            np.testing.assert_array_equal(
                other.decision_function_many(x), one.decision_function_many(x)
            )


@pytest.mark.parametrize("name", MAKE)
def test_a_class_that_does_not_come_any_more_is_still_known(name):
    make, n_classes = MAKE[name]
    x, y = stream(3, 200, n_classes, 0.3)
    y[100:] = y[100:] % 2 if n_classes > 2 else 0
    model = make()
    model.learn_many(x, y)
    numbers = np.abs(model.kept_numbers())
    assert set(y[numbers - 1]) == set(range(n_classes))
    # Of others only what is within the window.
    assert (numbers[y[numbers - 1] == 0] > 200 - WINDOW).all()
