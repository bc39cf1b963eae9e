"""Learners make one model of events and of batches, as if it was never saved or copied.

To the last bit: with dense and with sparse rows, within each bound, through the trials of scale,
width and rate, and where scales change later. `test_all_learners` asks the same of the
configurations of all learners, at once and of few examples.
"""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from streamsvm import (
    AdaptiveSVMClassifier,
    LaRankClassifier,
    LASVMClassifier,
    SGDQNClassifier,
    SVMSGDClassifier,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.models.kernel import race
from tests.learners.test_all_learners import content, saved
from tests.learners.test_rescaling import changing as changing_scales
from tests.learners.test_rescaling import changing_units
from tests.learners.test_trial import stream
from tests.slow import compiles, slow

RBF, LINEAR = kernels.RBF(gamma=0.5), kernels.Linear(scale=0.5)
QUADRATIC = kernels.Polynomial(degree=2)
# With which rows it is always asked: what the others compile for one test differs little from it.
SETTINGS = {
    LASVMClassifier: {
        "default": ("sparse", {}),
        "linear": ("dense", {"kernel": LINEAR, "class_weight": "balanced"}),
        "polynomial": ("dense", {"kernel": QUADRATIC, "C": 0.1, "class_weight": {1: 3.0}}),
        "window": ("dense", {"kernel": RBF, "window": 60}),
        "merge": ("dense", {"kernel": RBF, "max_support_vectors": 30}),
        "merge of others": ("", {"kernel": QUADRATIC, "max_support_vectors": 30}),
        "reserve": ("sparse", {"reserve": 40}),
        "reserve in a window": ("dense", {"reserve": 60, "window": 90}),
        "no reserve": ("", {"kernel": RBF, "reserve": 0, "delta_max": None}),
    },
    "LASVM of several classes": {
        "default": ("dense", {}),
        "reserve in a window": ("", {"reserve": 50, "window": 90}),
        "merge": ("", {"max_support_vectors": 40}),
        "one or the rest": ("dense", {"multiclass": "ovr", "class_weight": "balanced"}),
    },
    LaRankClassifier: {
        "default": ("dense", {}),
        "one step": ("dense", {"reprocess": 1, "candidates": 1, "kernel": LINEAR}),
        "budget": ("dense", {"max_support_vectors": 40}),
        "window": ("dense", {"window": 60, "reserve": 60}),
        "reserve": ("dense", {"reserve": 60, "class_weight": {1: 3.0}, "C": 5.0}),
        "uniform": ("", {"K": 2}),
    },
    TrackingSVMClassifier: {
        "default": ("dense", {}),
        "algorithm 1": ("", {"process": False, "K": 3}),
        "epsilon": ("dense", {"epsilon": 1.0}),
        "support": ("", {"gradients": "support", "averaged": False}),
        "window": ("dense", {"window": 60}),
        "support in a window": ("dense", {"window": 60, "gradients": "support"}),
        "reservoir": ("", {"reservoir": 50}),
        "merge": ("", {"max_support_vectors": 30}),
        "merge of others": ("", {"max_support_vectors": 30, "kernel": QUADRATIC}),
        "merge in a window": ("", {"max_support_vectors": 30, "window": 100, "cache_mb": 0.0}),
        "linear": ("dense", {"kernel": LINEAR}),
        "linear in a window": ("", {"kernel": LINEAR, "window": 40, "class_weight": {1: 2.0}}),
    },
}
CASES = [
    pytest.param(
        learner,
        {**parameters, "sparse": rows == "sparse"},
        id=f"{of}-{name}-{rows}",
        marks=() if rows == always else compiles(f"{of} {rows}"),
    )
    for learner, settings in SETTINGS.items()
    for of in [getattr(learner, "__name__", learner)]
    for name, (always, parameters) in settings.items()
    for rows in ("dense", "sparse")
]
N = 300


def problem(n_classes, n=N):
    """Return rows of which some values are 0, classes, of which one comes late, and weights."""
    rng = np.random.default_rng(3)
    x = (rng.normal(size=(n, 6)) * (rng.random((n, 6)) < 0.6)).astype(np.float32)
    # All names are known from the first row on, in this order.
    x[0] = 1.0
    y = (x[:, 0] * x[:, 1] + 0.5 * x[:, 2] > 0.1).astype(int)
    if n_classes > 2:
        y = np.where((np.arange(n) > 100) & (x[:, 3] > 0.3), 2 + (x[:, 4] > 0.0), y)
    noise = rng.random(n) < 0.1
    y[noise] = rng.permutation(y[noise])
    return x, y, 1.0 + np.arange(n) % 3


def by_events(model, x, y, w, is_sparse):
    predicted = []
    for n, (row, label, weight) in enumerate(zip(x.tolist(), y.tolist(), w.tolist(), strict=True)):
        names = [c for c, value in enumerate(row) if value or not is_sparse]
        # The first event gives features their columns, others come in any order.
        event = {c: row[c] for c in (names[::-1] if predicted else names)}
        predicted.append(model.predict_one(event))
        model.learn_one(event, label, w=weight)
        check_bounds(model, n + 1)
    return predicted


def check_bounds(model, n):
    """Check that a model of `n` events keeps what its window and its budget allow."""
    window, most = getattr(model, "window", None), getattr(model, "max_support_vectors", None)
    if window is not None and n > window:
        # A merged vector has the number of its newest part, below 0. Of a class two may be older.
        is_older = np.abs(model.kept_numbers()) <= n - window
        assert is_older.sum() <= 2 * len(model.classes)
    if most is not None:
        count = "n_support_patterns" if isinstance(model, LaRankClassifier) else "n_support_vectors"
        assert getattr(model, count) <= most
    if getattr(model, "reservoir", None) is not None:
        assert model.n_support_vectors <= model.n_kept <= model.reservoir


OF_EMPTY_SLOTS = ("gradient", "member_gradient", "f")
"""They mean nothing where there is no vector; where there is one, `finish` depends on them."""


def arrays_of(model):
    """Return what the model's file holds of each vector."""
    arrays = content(model)[1]
    return {name: array for name, array in arrays.items() if name not in OF_EMPTY_SLOTS}


def all_of(model):
    """Return what the model's file holds, but for what means nothing."""
    return content(model)[0], arrays_of(model)


def copies_of(model, folder):
    loaded = saved(model, folder / "model.svm")
    assert repr(loaded) == repr(model)
    copies = [loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for other in copies:
        assert getattr(other, "chosen", None) == getattr(model, "chosen", None)
        # Rows for `finish` travel, which need not change what it finds.
        assert other.memory_parts.get("reserve") == model.memory_parts.get("reserve")
    return copies


def finished(model):
    model.finish(**{"share": 0.0} if isinstance(model, LaRankClassifier) else {})
    return model


def check_one_model(one, rows, cuts, copied_at, folder, what=arrays_of, is_sparse=False):
    """Check that events, batches, and copies made before the rows `copied_at`, are one model.

    `what` returns what is the same of all of them.
    """
    x, y, w = rows
    kind = sp.csr_array if is_sparse else np.asarray
    # Without a seed of its own, a copy has that of the model.
    many = pickle.loads(pickle.dumps(one))
    predicted, found, others = by_events(one, x, y, w, is_sparse), [], []
    for start, stop in zip((0, *cuts), (*cuts, len(y)), strict=True):
        part = slice(start, stop)
        if start in copied_at:
            others.append((copies_of(many, folder), start))
        found += many.predict_then_learn_many(kind(x[part]), y[part].tolist(), w=w[part])
    assert found == predicted
    # Before anything is asked, which is counted.
    expected = what(many)
    assert what(one) == expected
    probe = kind(x[:40])
    margins = [many.decision_function_one(dict(enumerate(row))) for row in x[:40].tolist()]
    margins = [list(m.values()) if isinstance(m, dict) else m for m in margins]
    assert one.decision_function_many(probe).tolist() == margins
    for copies, start in others:
        for other in copies:
            part = kind(x[start:]), y[start:].tolist(), w[start:]
            assert other.predict_then_learn_many(*part) == predicted[start:]
            assert what(other) == expected
    return [one, many, *(other for copies, _ in others for other in copies)]


@pytest.mark.parametrize(("learner", "parameters"), CASES)
def test_of_events_of_batches_and_of_copies(learner, parameters, tmp_path):
    several, is_sparse = not isinstance(learner, type), parameters["sparse"]
    cls = LASVMClassifier if several else learner
    rows = problem(4 if several or cls is LaRankClassifier else 2)
    one = cls(**{"seed": 7, **parameters})
    models = check_one_model(one, rows, (1, 2, 130), (1, 130), tmp_path, is_sparse=is_sparse)
    final = arrays_of(finished(one))
    assert all(arrays_of(finished(model)) == final for model in models[1:])


LINEAR_MODELS = {
    "SGD": (SVMSGDClassifier, {}),
    "SGD by log loss": (SVMSGDClassifier, {"averaged": False, "loss": "log", "t0": 100.0}),
    "SGD weighted": (SVMSGDClassifier, {"averaged": 50, "skip": "auto", "class_weight": {1: 2.0}}),
    "SGD of sparse rows": (SVMSGDClassifier, {"sparse": True}),
    "SGD of hashed rows": (SVMSGDClassifier, {"hashing": 4}),
    "SGD-QN": (SGDQNClassifier, {}),
    "SGD-QN by Huber's loss": (SGDQNClassifier, {"loss": "huber", "power": 0.0}),
    "SGD-QN weighted": (SGDQNClassifier, {"class_weight": {1: 0.25}}),
    "SGD-QN of sparse rows": (SGDQNClassifier, {"sparse": True}),
    "SGD-QN of hashed rows": (SGDQNClassifier, {"hashing": 4}),
}


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", LINEAR_MODELS)
def test_of_linear_learners_through_the_choice_of_the_rate(name, n_classes, tmp_path):
    cls, parameters = LINEAR_MODELS[name]
    is_sparse, rows = "of sparse rows" in name, problem(n_classes, 1500)
    # An example of weight 0 is none.
    rows[2][::7] = 0.0
    cuts = (1, 130, 700, 1100, 1400)
    check_one_model(cls(**parameters), rows, cuts, (1, 700, 1400), tmp_path, content, is_sparse)


def classes(x, y):
    """Return four classes, of which two come late."""
    return y * 2 + (x[:, 2] > 0) * (np.arange(len(y)) > 300)


BOTH = (LASVMClassifier, LaRankClassifier)


def noisy():
    return stream(1400, noise_scale=100.0)


# Rows, whether there are four classes, parameters, the budget of the race, and before which rows
# copies are made; between them rows come in batches, some of which begin and end elsewhere.
LIVES = {
    "a trial": (noisy, False, {}, None, (3, 50, 1024, 1100)),
    "a trial of classes": (lambda: stream(1400, noise_scale=30.0), True, {}, None, (4, 700)),
    "a long race": (noisy, False, {}, 1.5e6, (514,)),
    "a long race of classes": (noisy, True, {}, 1.5e6, (514,)),
    "a longer race": (noisy, False, {}, 1.5e6, (1026,)),
    "a longer race of classes": (lambda: stream(1400, noise_scale=9.0), True, {}, 1.5e6, (1026,)),
    "a change of scales": (
        lambda: changing_scales(2300), False, {"scale": True, "window": 300}, None,
        (1024, 1500, 2047, 2048),
    ),
    "a change of units": (
        lambda: changing_units(2300), False, {"window": 500}, None, (1100, 2048),
    ),
}  # fmt: skip
OF_LIVES = [
    pytest.param(cls, life, marks=slow if is_slow else (), id=f"{cls.__name__}-{life}")
    for life in LIVES
    for cls in (*BOTH, *([AdaptiveSVMClassifier] if life == "a change of units" else []))
    for is_slow in ["race" in life and (cls, life) != (LASVMClassifier, "a long race")]
]


@pytest.mark.parametrize(("cls", "life"), OF_LIVES)
def test_of_kernel_learners_through_trials_and_changes(cls, life, tmp_path, monkeypatch):
    make, are_four, parameters, budget, copied_at = LIVES[life]
    if budget is not None:
        monkeypatch.setattr(race, "BUDGET", budget)
    x, y = make()
    y = classes(x, y) if are_four else y
    cuts = sorted({*copied_at, 5, 300, 1300})
    model = cls(**parameters)
    check_one_model(model, (x, y, np.ones(len(y))), cuts, copied_at, tmp_path, all_of)
    if cls is not AdaptiveSVMClassifier:
        assert model.preparation.trial is None and "on the first 1,024" in model.chosen


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("n", [514, 1026])
def test_finish_does_not_leave_a_race_to_events_that_may_not_come(cls, n_classes, n, monkeypatch):
    monkeypatch.setattr(race, "BUDGET", 1.5e6)
    x, y = stream(n, noise_scale=100.0)
    model = cls(seed=1)
    model.learn_many(x, (y if n_classes == 2 else classes(x, y)).tolist())
    assert model.preparation.trial.begun is not None
    model.finish()
    assert model.preparation.trial is None or n < 1024
