"""Scores that are combined, drifts and bits of ranks, example by example."""

import numpy as np


def slow_bits(x, weights):
    """Return columns and edges of bits that are shared out by weights, one after the other.

    Without weights those columns share alike that are not constant.
    """
    varies = [len(set(column)) > 1 for column in x.T.tolist()]
    d, n, are_equal = len(varies), 120, weights is None
    weights = np.where(varies, 1.0 if weights is None else weights, 0.0)
    wanted = n * weights / weights.sum()
    numbers = [int(value) for value in wanted]
    while sum(numbers) < n:
        numbers[max(range(d), key=lambda c: (wanted[c] - numbers[c], -c))] += 1
    if are_equal:
        numbers = [min(15, 120 // sum(varies)) * varies[c] for c in range(d)]
    columns, edges = [], []
    for c, k in enumerate(numbers):
        for i in range(1, k + 1):
            columns.append(c)
            edge = np.quantile(x[:, c].astype(float), i / (k + 1))
            # Below the largest value, so that this one differs from the others.
            edges.append(min([edge, max(v for v in x[:, c].tolist() if v < x[:, c].max())]))
    return np.array(columns), np.array(edges)


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


def slow_normal(row, learnt, mean_of_all, deviation, n_classes):
    """Return the logarithms of the odds of classes by Gaussian naive Bayes, but for a constant.

    `learnt` are (row, class, weight) of each example, `deviation` that of all, 0 where none is.
    """
    found = np.zeros(n_classes)
    varies, of_all = deviation > 0.0, deviation[deviation > 0.0] ** 2
    for c in range(n_classes):
        shares, n = np.zeros(0), 0.0
        for _ in [None for _, label, _ in learnt if label == c]:
            n = min(n + 1, 1000)
            share = 1.0 / n
            shares = np.append((1.0 - share) * shares, share)
        of_class = np.array([x for x, label, _ in learnt if label == c]).reshape(-1, len(row))
        # Each class has mean and variance of its examples, which weigh less the older they are.
        mean = shares @ of_class
        variance = shares @ (of_class - mean) ** 2
        mean = ((n * mean + mean_of_all) / (n + 1))[varies]
        variance = (n * variance[varies] + 5 * of_all) / (n + 5) + of_all / 1000
        distance = (row[varies] - mean) ** 2 / variance
        late = sum(
            weight * 0.999 ** (len(learnt) - 1 - i)
            for i, (_, label, weight) in enumerate(learnt)
            if label == c
        )
        found[c] = np.log(late + 1) - 0.5 * np.log(variance / of_all).sum()
        found[c] -= 0.5 * np.minimum(25.0, distance).sum()
    return found


def slow_combination(scores, rows, y, is_known, knows_last, is_sparse, weights_of_examples):
    """Return combined scores of rows, of which those with a known label are learnt, one by one.

    `scores` are (n, 3, 1), or (n, 3, classes), of kernel models; rows are (n, d). The last label is
    only known of rows that are learnt. Weights are (n,), the class weights included.
    """
    (n, _, k), d = scores.shape, rows.shape[1]
    weights, curvature, leads = np.array([1.5, *np.zeros(7)]), np.zeros((8, 8)), np.zeros(8)
    linear, seen, last = np.zeros((2, k, 1 + d)), [], None
    errors = np.zeros(10)
    counts, docs = np.zeros((max(2, k), d)), np.zeros(max(2, k))
    learnt = []  # rows as they are learnt, their classes and weights
    out = np.zeros((n, k))

    def side(values):
        return np.hstack([[0.0], values]) if k == 1 else values

    def lead_of(values):
        two, one = np.sort(values)[-2:]
        return one - two

    for r in range(n):
        z = rows[r].astype(float)
        if not is_sparse:
            before = np.array(seen).reshape(-1, d)
            deviation = before.std(axis=0) if seen else np.zeros(d)
            varies = deviation > 1e-6
            mean = before.mean(axis=0) if seen else np.zeros(d)
            z = np.where(varies, (z - mean) / np.where(varies, deviation, 1.0), 0.0).clip(-10, 10)
            normal = slow_normal(rows[r], learnt, mean, np.where(varies, deviation, 0.0), max(2, k))
        z = np.hstack([1.0, z])
        known, words = counts.sum(axis=0) > 0.0, np.abs(rows[r].astype(float))
        bayes = np.log(docs + 1.0)
        for c in np.flatnonzero(known & (words > 0.0)):
            total = counts.sum(axis=1) + known.sum() + 1.0
            bayes = bayes + words[c] * np.log((counts[:, c] + 1.0) / total)
        bayes = bayes if is_sparse else normal
        bayes = (bayes[1:] - bayes[:1] if k == 1 else bayes) / 3.0
        own = [*scores[r], linear[0] @ z, linear[1] @ z, bayes]
        f = np.zeros((8, k))
        for m, values in enumerate(own):
            if k == 1:
                f[m] = values.clip(-3, 3)
            elif lead_of(values) > 0.0:
                two, one = np.sort(values)[-2:]
                scaled = (values - 0.5 * (one + two)) * 2.0 / max(leads[m], 1e-6)
                f[m] = 0.5 * scaled.clip(-3, 3)
        if k == 1:
            f[7] = 1.0
        if is_known[r] and knows_last and last is not None:
            f[6, last if k > 1 else 0] = 2.0 if k > 1 or last else -2.0
        combined = weights @ f
        without = combined - weights[6] * f[6]
        uses_last = errors[8] < errors[9] - 0.02
        out[r] = combined if uses_last else without
        able = np.where(weights[:6] != 0.0, errors[:6], 1.0)
        if able.min() < errors[8 if uses_last else 9] - 0.01:
            out[r] = 1.5 * f[able.argmin()]
        if not is_known[r]:
            continue
        weight, last = weights_of_examples[r], y[r]
        if weight == 0.0:
            continue
        wrong = np.array([side(values).argmax() != y[r] for values in (*f, combined, without)])
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
        weights = weights - np.linalg.solve(curvature + 3.0 * np.eye(8), weight * gradient)
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
        learnt.append((value, y[r], weight))
        for m, values in enumerate(own):
            if k > 1 and lead_of(values) > 0.0:
                share = min(len(seen) + 1, 500) if leads[m] else 1
                leads[m] += (min(lead_of(values), 100.0) - leads[m]) / share
        counts[y[r]] += weight * words
        docs[y[r]] += weight
    return out
