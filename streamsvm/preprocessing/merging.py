"""Statistics of features over two sets of rows, from those of each."""

import numpy as np

from streamsvm.support.feature_statistics import COUNT, MEAN, N_CLIPPED, VARIANCE


def merged(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the statistics of two sets of rows together (Chan, Golub and LeVeque, 1979).

    Both are float64 (N_ROWS, d). Recent values are not known any more: they begin anew.
    """
    out = np.zeros_like(a)
    n = out[COUNT] = a[COUNT] + b[COUNT]
    share = b[COUNT] / np.maximum(n, 1.0)
    between = b[MEAN] - a[MEAN]
    out[MEAN] = a[MEAN] + share * between
    within = (1.0 - share) * a[VARIANCE] + share * b[VARIANCE]
    out[VARIANCE] = within + share * (1.0 - share) * between**2
    out[N_CLIPPED] = a[N_CLIPPED] + b[N_CLIPPED]
    return out
