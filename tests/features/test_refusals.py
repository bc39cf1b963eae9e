"""What is said about values that are refused."""

import numpy as np
import pytest

from streamsvm.errors import FeatureError
from streamsvm.features.events import check_number_feature


@pytest.mark.parametrize("value", [1e100, -3.5e38, np.float64(1e300), 10**100])
def test_finite_numbers_beyond_single_precision_are_not_called_infinite(value):
    with pytest.raises(FeatureError, match="'a' is .*: beyond single precision") as caught:
        check_number_feature("a", value)
    assert "finite" not in str(caught.value) and len(str(caught.value)) < 250


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", None, 1j])
def test_other_values_are_told_what_is_accepted(value):
    with pytest.raises(FeatureError, match="only finite numbers are accepted"):
        check_number_feature("a", value)


def test_integers_too_long_to_write_are_described():
    # Python refuses to convert integers of more than 4,300 digits to text.
    with pytest.raises(FeatureError, match="an integer of 16610 bits: beyond single precision"):
        check_number_feature("a", 10**5000)
