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


def slow_last_label(scores, y, is_example):
    """Return scores with what the last label adds, and whether it adds anything, row by row."""
    n_classes = max(2, scores.shape[1])
    full = np.hstack([0.0 * scores, scores]) if scores.shape[1] == 1 else scores
    out, used, last, is_used, n_changes = scores.copy(), np.zeros(len(y), bool), None, False, 0
    w, curvature, share = np.array([2.0, 0.0]), np.eye(2), np.zeros(2)
    for r in range(len(y)):
        used[r] = is_used
        if not is_example[r]:
            continue
        added = np.clip(w[1] / w[0], -4.0, 4.0)
        if is_used:
            out[r, -1 if scores.shape[1] == 1 else last] += added * (
                1 if n_classes > 2 or last else -1
            )
        if last is not None:
            lead = full[r, last] - np.delete(full[r], last).max()
            second = np.where(np.arange(n_classes) == last, -np.inf, full[r]).argmax()
            wrong = np.array(
                [full[r].argmax() != y[r], (last if lead + added > 0 else second) != y[r]]
            )
            share = 0.997 * share + 0.003 * wrong
            g = np.array([np.clip(lead, -5.0, 5.0), 1.0])
            p = 1.0 / (1.0 + np.exp(-w @ g))
            curvature = (
                0.9995 * curvature + 0.0005 * np.eye(2) + max(p * (1 - p), 1e-4) * np.outer(g, g)
            )
            w = w + ((y[r] == last) - p) * np.linalg.solve(curvature, g)
            w[0] = max(w[0], 1e-3)
            n_changes += y[r] != last
            gain = share[0] - share[1]
            if gain > 0.01 and n_changes >= 5 + n_classes - 1:
                is_used = True
            elif gain < 0.0:
                is_used = False
        last = y[r]
    return out, used
