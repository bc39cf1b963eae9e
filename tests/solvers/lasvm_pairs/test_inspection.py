"""What is asked of two classes and of several: one problem says the same in both states."""

import numpy as np
import pytest

from streamsvm.models.kernel.lasvm_solver import LASVMSolver
from streamsvm.models.kernel.reserve import Reserve
from streamsvm.solvers.lasvm import state as two_state
from streamsvm.solvers.lasvm import step as two_step
from tests.solvers.lasvm.test_step import SECOND, Stream, problem
from tests.solvers.lasvm_pairs.test_step import KERNEL

ASKED = ("biases", "n_support_vectors", "dual", "delta")


@pytest.mark.parametrize("n", [0, 1, 60])
def test_two_classes_as_one_problem_of_several(n):
    x, y = problem(3, 60, 3)
    two = Stream(x, y, np.full(60, 0.5), KERNEL, SECOND).learn(0, n).state
    of_two = LASVMSolver(KERNEL, SECOND, 0.0, Reserve(0), False)
    of_two.state = two
    assert of_two.biases == [two_state.bias(two)]
    assert of_two.delta == two_step.delta(two)
    of_pairs = of_two.of_classes(3)
    for name in ASKED:
        got, expected = getattr(of_two, name), getattr(of_pairs, name)
        assert type(got) is type(expected)
        if name == "biases":
            # The problem of several is that of class 0 against class 1.
            expected = [-b for b in expected]
        np.testing.assert_allclose(got, expected, rtol=1e-12, err_msg=name)
    assert of_two.squared_norm(3) == pytest.approx(of_pairs.squared_norm(3), rel=1e-12)
    at_bound = of_two.at_bound()
    np.testing.assert_array_equal(at_bound, of_pairs.at_bound())
    # Each problem has a best bias of its own: there is no shift.
    np.testing.assert_allclose(of_pairs.kept_gap(3)[:2], of_two.kept_gap(3)[:2], rtol=1e-12)
    own = of_two.coefficients(int(two.info[0].n))
    np.testing.assert_array_equal(of_pairs.coefficients(len(own))[:, 0], -own)
    assert at_bound.size == of_two.n_support_vectors
    assert 0 < at_bound.sum() < of_two.n_support_vectors or n < 60
