"""Kernel learners make one model of events and of batches, as if it was never saved or copied.

To the last bit, with dense and with sparse rows, within each bound. `test_all_learners` asks the
same of the configurations of all learners; trials, scales and drift have tests of their own.
"""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import streamsvm
from streamsvm import LaRankClassifier, LASVMClassifier, TrackingSVMClassifier, kernels
from tests.learners.test_all_learners import content
from tests.slow import compiles

RBF, LINEAR = kernels.RBF(gamma=0.5), kernels.Linear(scale=0.5)
SETTINGS = {
    LASVMClassifier: {
        "default": {},
        "linear": {"kernel": LINEAR, "class_weight": "balanced"},
        "window": {"kernel": RBF, "window": 60},
        "merge": {"kernel": RBF, "max_support_vectors": 30},
        "merge of others": {"kernel": kernels.Polynomial(degree=2), "max_support_vectors": 30},
        "reserve": {"reserve": 40},
        "reserve in a window": {"reserve": 60, "window": 90},
        "no reserve": {"kernel": RBF, "reserve": 0, "delta_max": None},
    },
    "LASVM of several classes": {
        "default": {},
        "reserve in a window": {"reserve": 50, "window": 90},
        "merge": {"max_support_vectors": 40},
        "one or the rest": {"multiclass": "ovr", "class_weight": "balanced"},
    },
    LaRankClassifier: {
        "default": {},
        "one step": {"reprocess": 1, "candidates": 1, "kernel": LINEAR},
        "budget": {"max_support_vectors": 40},
        "window": {"window": 60, "reserve": 60},
        "reserve": {"reserve": 60, "class_weight": {1: 3.0}, "C": 5.0},
        "uniform": {"K": 2},
    },
    TrackingSVMClassifier: {
        "default": {},
        "algorithm 1": {"process": False, "K": 3},
        "epsilon": {"epsilon": 1.0},
        "support": {"gradients": "support", "averaged": False},
        "window": {"window": 60},
        "support in a window": {"window": 60, "gradients": "support"},
        "reservoir": {"reservoir": 50},
        "merge": {"max_support_vectors": 30},
        "merge of others": {"max_support_vectors": 30, "kernel": kernels.Polynomial(degree=2)},
        "merge in a window": {"max_support_vectors": 30, "window": 100, "cache_mb": 0.0},
        "linear": {"kernel": LINEAR},
        "linear in a window": {"kernel": LINEAR, "window": 40, "class_weight": {1: 2.0}},
    },
}
# The others compile for one test what differs little from these.
ALWAYS = {
    (LASVMClassifier, "default", "sparse"),
    (LASVMClassifier, "linear", "dense"),
    (LASVMClassifier, "window", "dense"),
    (LASVMClassifier, "merge", "dense"),
    (LASVMClassifier, "reserve", "sparse"),
    (LASVMClassifier, "reserve in a window", "dense"),
    ("LASVM of several classes", "default", "dense"),
    ("LASVM of several classes", "one or the rest", "dense"),
    (LaRankClassifier, "default", "dense"),
    (LaRankClassifier, "one step", "dense"),
    (LaRankClassifier, "reserve", "dense"),
    (TrackingSVMClassifier, "default", "dense"),
    (TrackingSVMClassifier, "epsilon", "dense"),
    (TrackingSVMClassifier, "support in a window", "dense"),
    (TrackingSVMClassifier, "linear", "dense"),
}
CASES = [
    pytest.param(
        learner,
        {**parameters, "sparse": rows == "sparse"},
        id=f"{of}-{name}-{rows}",
        marks=() if (learner, name, rows) in ALWAYS else compiles(f"{of} {rows}"),
    )
    for learner, settings in SETTINGS.items()
    for of in [getattr(learner, "__name__", learner)]
    for name, parameters in settings.items()
    for rows in ("dense", "sparse")
]
N = 300


def problem(n_classes):
    """Return rows of which some values are 0, classes, of which one comes late, and weights."""
    rng = np.random.default_rng(3)
    x = (rng.normal(size=(N, 6)) * (rng.random((N, 6)) < 0.6)).astype(np.float32)
    # All names are known from the first row on, in this order.
    x[0] = 1.0
    y = (x[:, 0] * x[:, 1] + 0.5 * x[:, 2] > 0.1).astype(int)
    if n_classes > 2:
        y = np.where((np.arange(N) > 100) & (x[:, 3] > 0.3), 2 + (x[:, 4] > 0.0), y)
    noise = rng.random(N) < 0.1
    y[noise] = rng.permutation(y[noise])
    return x, y, 1.0 + np.arange(N) % 3


def by_events(model, x, y, w, is_sparse):
    predicted = []
    for row, label, weight in zip(x.tolist(), y.tolist(), w.tolist(), strict=True):
        names = [c for c, value in enumerate(row) if value or not is_sparse]
        # The first event gives features their columns, others come in any order.
        event = {c: row[c] for c in (names[::-1] if predicted else names)}
        predicted.append(model.predict_one(event))
        model.learn_one(event, label, w=weight)
    return predicted


OF_EMPTY_SLOTS = ("gradient", "member_gradient", "f")
"""They mean nothing where there is no vector; where there is one, `finish` depends on them."""


def arrays_of(model):
    """Return what the model's file holds of each vector."""
    arrays = content(model)[1]
    return {name: array for name, array in arrays.items() if name not in OF_EMPTY_SLOTS}


def copies_of(model, folder):
    model.save(folder / "model.svm")
    loaded = streamsvm.load(folder / "model.svm")
    assert repr(loaded) == repr(model)
    copies = [loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for other in copies:
        # Rows for `finish` travel, which need not change what it finds.
        assert other.memory_parts.get("reserve") == model.memory_parts.get("reserve")
    return copies


def finished(model):
    model.finish(**{"share": 0.0} if isinstance(model, LaRankClassifier) else {})
    return model


@pytest.mark.parametrize(("learner", "parameters"), CASES)
def test_of_events_of_batches_and_of_copies(learner, parameters, tmp_path):
    several, is_sparse = not isinstance(learner, type), parameters["sparse"]
    cls = LASVMClassifier if several else learner
    x, y, w = problem(4 if several or cls is LaRankClassifier else 2)
    kind = sp.csr_array if is_sparse else np.asarray
    one, many = (cls(**{"seed": 7, **parameters}) for _ in range(2))
    predicted, found, others = by_events(one, x, y, w, is_sparse), [], []
    for start, stop in ((0, 1), (1, 2), (2, 130), (130, N)):
        part = slice(start, stop)
        if stop in (2, N):
            # As before the first row of this batch, and before its last rows.
            others.append((copies_of(many, tmp_path), start))
        found += many.predict_then_learn_many(kind(x[part]), y[part].tolist(), w=w[part])
    assert found == predicted
    assert arrays_of(one) == arrays_of(many)
    probe = kind(x[:40])
    margins = [many.decision_function_one(dict(enumerate(row))) for row in x[:40].tolist()]
    margins = [list(m.values()) if isinstance(m, dict) else m for m in margins]
    assert one.decision_function_many(probe).tolist() == margins
    expected, final = arrays_of(many), arrays_of(finished(many))
    assert arrays_of(finished(one)) == final
    for copies, start in others:
        for other in copies:
            other.learn_many(kind(x[start:N]), y[start:N].tolist(), w=w[start:N])
            assert arrays_of(other) == expected
            assert arrays_of(finished(other)) == final
