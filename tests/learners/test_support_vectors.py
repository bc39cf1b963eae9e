"""What a kernel learner shows of its model: its support vectors make its margins and its norm."""

import numpy as np
import pytest

from streamsvm import (
    HullerClassifier,
    KernelPAClassifier,
    KernelPegasosClassifier,
    KernelPerceptronClassifier,
    LASVMClassifier,
    SBPClassifier,
    TrackingSVMClassifier,
    kernels,
)
from tests.kernels.test_values import expected

FAMILY = (KernelPerceptronClassifier, KernelPAClassifier, KernelPegasosClassifier)
OF_AVERAGES = [{"averaged": True}, {"averaged": False}]
CASES = [
    (LASVMClassifier, {}),
    (TrackingSVMClassifier, {}),
    (TrackingSVMClassifier, {"kernel": kernels.Linear()}),
    (SBPClassifier, {}),
    (SBPClassifier, {"bias": False, "averaged": False}),
    (SBPClassifier, {"window": 60}),
    (HullerClassifier, {}),
    # Gamma changes within the first examples: what depends on it is kept right.
    *(
        (KernelPerceptronClassifier, {"kernel": None, "budget": budget, "max_support_vectors": 20})
        for budget in ("project", "remove", "merge")
    ),
    *((cls, given) for cls in FAMILY for given in OF_AVERAGES),
    *((cls, given | {"max_support_vectors": 30}) for cls in FAMILY for given in OF_AVERAGES),
    *(
        (KernelPAClassifier, {"kernel": kernel, "budget": budget, "max_support_vectors": 10})
        for kernel in (kernels.Linear(), kernels.Polynomial(degree=2))
        for budget in ("merge", "project")
    ),
]


def rings(n, seed=0):
    draws = np.random.default_rng(seed)
    x = draws.normal(size=(n, 2)).astype(np.float32)
    return x, (x**2).sum(axis=1) + 0.2 * draws.normal(size=n) < 1.4


@pytest.mark.parametrize(
    ("cls", "parameters"), CASES, ids=[f"{cls.__name__}-{given}" for cls, given in CASES]
)
def test_the_support_vectors_are_the_model(cls, parameters):
    x, y = rings(400)
    model = cls(**{"kernel": kernels.RBF(gamma=1.0), "seed": 0} | parameters)
    assert model.support_vectors().labels == []
    model.learn_many(x, y)
    found, kernel = model.support_vectors(), model.kernel_
    # The bias of an SBP is the parameter whether there is one.
    bias = getattr(model, "bias_", getattr(model, "bias", 0.0))
    assert (bias == 0.0) == (cls in (*FAMILY, TrackingSVMClassifier) or "bias" in parameters)
    by_hand = expected(kernel, x[:20], found.rows) @ found.coefficients + bias
    np.testing.assert_allclose(model.decision_function_many(x[:20]), by_hand, rtol=1e-3, atol=1e-3)
    if hasattr(model, "squared_norm"):
        gram = expected(kernel, found.rows, found.rows)
        norm = found.coefficients @ gram @ found.coefficients
        assert model.squared_norm == pytest.approx(norm, rel=1e-3)
    if "kernel" not in parameters:
        assert np.mean(np.array(model.predict_many(x)) == y) > 0.9
    limit = parameters.get("max_support_vectors", parameters.get("window", 400))
    assert len(found.rows) == len(found.labels) == model.n_support_vectors <= limit
    assert model.memory_usage > found.rows.nbytes and any(model.counters.values())
    if parameters.get("budget") != "merge":
        assert (np.diff(found.entered) > 0).all()
        np.testing.assert_array_equal(found.rows, x[found.entered - 1])
        if "max_support_vectors" not in parameters:
            assert found.labels == y[found.entered - 1].tolist()
    if cls is HullerClassifier:
        # Scaled so that the margin is 1: coefficients of each class sum to 2 / distance^2.
        own = found.coefficients
        assert own.sum() == pytest.approx(0.0, abs=1e-6 * np.abs(own).sum())
        assert own[own > 0].sum() == pytest.approx(2.0 / model.distance**2, rel=1e-6)
