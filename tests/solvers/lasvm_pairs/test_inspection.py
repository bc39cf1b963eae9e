"""What is asked of two classes and of several: one problem says the same in both states."""

import numpy as np
import pytest

from streamsvm.solvers.lasvm import inspection as of_two
from streamsvm.solvers.lasvm import state as two_state
from streamsvm.solvers.lasvm import step as two_step
from streamsvm.solvers.lasvm_pairs import classes
from streamsvm.solvers.lasvm_pairs import inspection as of_pairs
from tests.solvers.lasvm.test_step import SECOND, Stream, problem
from tests.solvers.lasvm_pairs.test_step import CACHE, KERNEL

ASKED = ("biases", "n_support_vectors", "dual", "squared_norm", "delta", "at_bound")


@pytest.mark.parametrize("n", [0, 1, 60])
def test_two_classes_as_one_problem_of_several(n):
    x, y = problem(3, 60, 3)
    two = Stream(x, y, np.full(60, 0.5), KERNEL, SECOND).learn(0, n).state
    assert of_two.biases(two) == [two_state.bias(two)]
    assert of_two.delta(two) == two_step.delta(two)
    pairs = classes.from_two(two, 0, False, CACHE)
    for name in ASKED:
        got, expected = (getattr(of, name)(s) for of, s in ((of_two, two), (of_pairs, pairs)))
        assert type(got) is type(expected)
        np.testing.assert_allclose(got, expected, rtol=1e-12, err_msg=name)
    # Each problem has a best bias of its own: there is no shift.
    np.testing.assert_allclose(of_pairs.kept_gap(pairs)[:2], of_two.kept_gap(two)[:2], rtol=1e-12)
    np.testing.assert_array_equal(of_pairs.coefficients(pairs)[:, 0], of_two.coefficients(two))
    assert of_two.at_bound(two).size == of_two.n_support_vectors(two)
    assert 0 < of_two.at_bound(two).sum() < of_two.n_support_vectors(two) or n < 60
