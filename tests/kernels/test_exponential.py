"""exp_float32 against NumPy's exp in double precision."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamsvm.kernels.rbf import exp_float32


@given(st.floats(-87.0, 0.0, width=32))
def test_relative_error_is_below_5e_7(x):
    got = exp_float32(np.float32(x))
    assert abs(float(got) - np.exp(x)) <= 5e-7 * np.exp(x)


def test_where_the_reduction_changes_its_integer():
    # |r| is largest half way between two multiples of ln 2: where the polynomial is weakest.
    middles = (-(np.arange(0, 125) + 0.5) * np.log(2.0)).astype(np.float32)
    for x in middles:
        for near in (np.nextafter(x, np.float32(-100)), x, np.nextafter(x, np.float32(1))):
            assert abs(float(exp_float32(near)) / np.exp(float(near)) - 1.0) <= 5e-7


def test_ends_of_the_range():
    assert exp_float32(np.float32(0.0)) == 1.0
    assert exp_float32(np.float32(-87.0)) > np.finfo(np.float32).tiny
    assert exp_float32(np.nextafter(np.float32(-87.0), np.float32(-88.0))) == 0.0
    for x in (-87.5, -1e4, -3e38, -np.inf):
        assert exp_float32(np.float32(x)) == 0.0


def test_doubles_give_what_their_nearest_floats_give():
    for x in (-0.1, -1.0 / 3.0, -20.2, -86.9, -1e300):
        with np.errstate(over="ignore"):
            assert exp_float32(np.float64(x)) == exp_float32(np.float32(x))
