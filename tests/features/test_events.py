"""The values of events as floats."""

import numpy as np
import pytest

from streamsvm.errors import FeatureError
from streamsvm.features.events import check_number_feature


@pytest.mark.parametrize("kind", [complex, np.complex64, np.complex128, np.clongdouble])
def test_complex_numbers_are_refused(kind):
    with pytest.raises(FeatureError, match="'a' is .*: only finite numbers are accepted"):
        check_number_feature("a", kind(1))
