"""You learn how to write a kernel of your own: a NamedTuple of floats and one function.

It is compiled like the library's kernels.
"""

import math
from typing import NamedTuple

from river import datasets, evaluate, metrics

from streamsvm import LASVMClassifier, kernels


class Laplacian(NamedTuple):
    """k(x, z) = exp(-gamma sum_i |x_i - z_i|)."""

    gamma: float


# A function of the two vectors; of="dot" or of="distance" is faster where it fits.
@kernels.register(Laplacian)
def laplacian(kernel, x, z):
    total = 0.0
    for i in range(len(x)):
        total += abs(x[i] - z[i])
    return math.exp(-kernel.gamma * total)


def main() -> None:
    model = LASVMClassifier(kernel=Laplacian(gamma=1.0))
    stream = datasets.Bananas().take(2000)
    print(model.kernel, evaluate.progressive_val_score(stream, model, metrics.Accuracy()))


if __name__ == "__main__":
    main()
