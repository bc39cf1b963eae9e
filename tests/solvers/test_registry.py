"""The functions that event paths call: one for each type of state, kernel and schedule."""

import numpy as np
import pytest

from streamsvm import LASVMClassifier, kernels
from streamsvm._compile import JIT
from streamsvm.solvers import registry

pytestmark = pytest.mark.skipif(not JIT, reason="there are no addresses without the compiler")


def arguments(n=20, **parameters):
    model = LASVMClassifier(**{"kernel": kernels.RBF(gamma=1.0)} | parameters)
    x = np.random.default_rng(0).normal(size=(n, 3))
    model.learn_many(x, (x[:, 0] > 0.0).tolist())
    return model.state, model.bound_kernel(model.state), model.event_parts()[2]


def test_a_solver_is_looked_up_by_the_types_of_what_it_works_with():
    known = registry.solver_for(*arguments(), 1, False)
    n_known = len(registry._addresses)
    # A larger state is of the same type.
    assert registry.solver_for(*arguments(n=300, C=0.1), 1, False) == known
    assert len(registry._addresses) == n_known
    others = [
        registry.solver_for(*arguments(sparse=True), 1, True),
        registry.solver_for(*arguments(window=10), 1, False),
    ]
    assert len({known, *others}) == 3
