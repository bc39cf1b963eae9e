"""The choice among models, example by example."""

import numpy as np


def slow_choice(wrong, fade, lead, every):
    """Return the models in use, and the faded errors in the end, from errors bool (models, n)."""
    n_models, n = wrong.shape
    faded, used, chosen = np.zeros(n_models), 0, []
    for r in range(n):
        chosen.append(used)
        faded = fade * faded + (1.0 - fade) * wrong[:, r]
        if (r + 1) % every == 0:
            best = int(np.argmin(faded))
            if faded[best] < faded[used] - lead:
                used = best
    return np.array(chosen), faded
