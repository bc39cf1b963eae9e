import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm.solvers.lasvm.finish import order_statistic


@given(
    st.lists(st.one_of(st.floats(allow_nan=False), st.sampled_from([0.0, 1.0])), min_size=1),
    st.data(),
)
def test_it_is_the_number_at_that_place_when_sorted(values, data):
    n = data.draw(st.integers(0, len(values) - 1))
    given = np.array(values)
    assert order_statistic(given, n) == sorted(values)[n]
    assert sorted(given) == sorted(values)


@pytest.mark.parametrize("steps", [1, -1, 0])
def test_values_in_order_equal_ones_and_all_places(steps):
    values = np.arange(50.0) * steps
    found = [order_statistic(values.copy(), n) for n in range(50)]
    np.testing.assert_array_equal(found, np.sort(values))
