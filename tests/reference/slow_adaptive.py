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


def slow_drifts(wrong, slow, fast, limit, apart, every):
    """Return after which examples a drift is noticed, from the errors bool (n,) of one model.

    `slow` and `fast` are (fade, alarm).
    """
    noticed, is_on = [], False
    for n in range(every, len(wrong) + 1, every):
        mean = (np.sum(wrong[:n]) + 1) / (n + 2)
        excess = []
        for fade, _ in (slow, fast):
            weights = (1 - fade) * fade ** np.arange(n - 1, -1, -1)
            # Of a mean with these weights, in an endless stream.
            deviation = np.sqrt(mean * (1 - mean) * (1 - fade) ** 2 / (1 - fade**2))
            excess.append((weights @ wrong[:n] - mean) / deviation)
        if excess[0] <= limit:
            is_on = False
        is_far = not noticed or n - noticed[-1] >= apart
        if not is_on and is_far and (excess[0] > slow[1] or excess[1] > fast[1]):
            noticed.append(n)
            is_on = True
    return noticed
