"""Sets with a coverage, in plain NumPy: the threshold is computed anew from all scores so far."""

import numpy as np


def threshold(scores, missed, a):
    """Return the threshold after events with these scores, of which some were missed."""
    level, step, most = a, a / 4.0, min(1.0, 3.0 * a)
    for m in missed:
        level += step * (a - m)
        # Only what no threshold could help moves a level further.
        level = min(max(level, -step * (1.0 - a)), most + step * a)
    if level >= most:
        return -np.inf
    if level <= 0.0:
        return np.inf
    last = np.sort(scores[-500:])
    place = len(last) - int(np.floor((len(last) + 1) * level))
    return last[place] if place < len(last) else np.inf


def scores_of(p, kind):
    """Return the score of each label, given {label: probability}."""
    if kind == "least_ambiguous":
        return {y: 1.0 - p[y] for y in p}
    return {y: sum(sorted((q for q in p.values() if q > p[y]), reverse=True)) for y in p}


def sets_of(stream, coverage, by_class=False, kind="least_ambiguous"):
    """Return the set of each event of a stream of ({label: probability}, label), as Python sets.

    No two labels of an event are equally likely.
    """
    past, found = [], []  # (label, score, missed)
    for p, y in stream:
        scores = dict.fromkeys((one[0] for one in past), 1.0) | scores_of(p, kind)
        chosen = set()
        for label, score in scores.items():
            of = [one for one in past if one[0] == label] if by_class else past
            given = [one[1] for one in of], [one[2] for one in of]
            if score <= threshold(*given, 1.0 - coverage):
                chosen.add(label)
        found.append(chosen)
        past.append((y, scores.get(y, 1.0), y not in chosen))
    return found
