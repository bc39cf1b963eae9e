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


def slow_combination(scores, rows, y, is_known, knows_last, is_sparse, weights_of_examples):
    """Return combined scores of rows, of which those with a known label are learnt, one by one.

    `scores` are (n, 1), or (n, classes), of the model in use; rows are (n, d). The last label is
    only known of rows that are learnt. Weights are (n,), the class weights included.
    """
    (n, k), d = scores.shape, rows.shape[1]
    weights, curvature, leads = np.array([1.5, 0, 0, 0, 0]), np.zeros((5, 5)), np.zeros(5)
    linear, errors, seen, last = np.zeros((2, k, 1 + d)), np.zeros(2), [], None
    out = np.zeros(scores.shape)

    def side(values):
        return np.hstack([[0.0], values]) if k == 1 else values

    for r in range(n):
        z = rows[r].astype(float)
        if not is_sparse:
            before = np.array(seen).reshape(-1, d)
            deviation = before.std(axis=0) if seen else np.zeros(d)
            varies = deviation > 1e-6
            mean = before.mean(axis=0) if seen else np.zeros(d)
            z = np.where(varies, (z - mean) / np.where(varies, deviation, 1.0), 0.0).clip(-10, 10)
        z = np.hstack([1.0, z])
        own = [scores[r], linear[0] @ z, linear[1] @ z]
        f = np.zeros((5, k))
        for m, values in enumerate(own):
            if k == 1:
                f[m] = values.clip(-3, 3)
            else:
                two, one = np.sort(values)[-2:]
                scaled = (values - 0.5 * (one + two)) * 2.0 / max(leads[m], 1e-6)
                f[m] = 0.5 * scaled.clip(-3, 3)
        if k == 1:
            f[4] = 1.0
        if is_known[r] and knows_last and last is not None:
            f[3, last if k > 1 else 0] = 2.0 if k > 1 or last else -2.0
        combined = weights @ f
        out[r] = 1.5 * f[0] if errors[0] < errors[1] + 0.005 else combined
        if not is_known[r]:
            continue
        wrong = np.array([side(one).argmax() != y[r] for one in (scores[r], combined)])
        weight = weights_of_examples[r]
        errors += weight / (weight + 500) * (wrong - errors)
        if k == 1:
            p = 1.0 / (1.0 + np.exp(-combined[0]))
            gradient, own_curvature = (p - y[r]) * f[:, 0], np.outer(f[:, 0], f[:, 0])
            own_curvature *= max(p * (1 - p), 0.02)
        else:
            p = np.exp(combined - combined.max())
            p = 0.96 * p / p.sum() + 0.04 / k
            gradient = f @ p - f[:, y[r]]
            own_curvature = (f * p) @ f.T - np.outer(f @ p, f @ p)
        curvature = 0.998 * curvature + weight * own_curvature
        weights = weights - np.linalg.solve(curvature + 3.0 * np.eye(5), weight * gradient)
        for m, C in ((0, weight), (1, 0.01 * weight)):
            values = linear[m] @ z
            if k == 1:
                t = 1.0 if y[r] else -1.0
                linear[m, 0] += min(C, max(0.0, 1.0 - t * values[0]) / (z @ z)) * t * z
            else:
                rival = np.where(np.arange(k) == y[r], -np.inf, values).argmax()
                step = min(C, max(0.0, 1.0 - values[y[r]] + values[rival]) / (2.0 * z @ z))
                linear[m, y[r]] += step * z
                linear[m, rival] -= step * z
        value = rows[r].astype(float)
        if len(seen) >= 30 and not is_sparse:
            far = np.where(varies, 10.0 * deviation, np.inf)
            value = value.clip(mean - far, mean + far)
        seen.append(value)
        if k > 1:
            for m, values in enumerate(own):
                two, one = np.sort(values)[-2:]
                leads[m] += (min(one - two, 100.0) - leads[m]) / min(len(seen) + 1, 500)
        last = y[r]
    return out
