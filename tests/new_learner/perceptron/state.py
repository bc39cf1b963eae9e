"""What the perceptron keeps between examples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm.support.declaration import Field
from streamsvm.support.states import declare

BIAS, N_UPDATES = range(2)


class PerceptronState(NamedTuple):
    """Weights and bias."""

    weights: np.ndarray  # w
    info: np.ndarray  # bias, mistakes so far


declare(PerceptronState, {"weights": Field(("features",)), "info": Field((2,))})
