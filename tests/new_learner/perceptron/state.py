"""What the perceptron keeps between examples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm.support.declaration import field
from streamsvm.support.states import declare

BIAS, N_UPDATES = range(2)


class PerceptronState(NamedTuple):
    """Weights and bias."""

    weights: np.ndarray = field("features")  # w
    info: np.ndarray = field(2)  # bias, mistakes so far


declare(PerceptronState)
