"""Sets with a coverage, in plain NumPy: the threshold is computed anew from all scores so far."""

import numpy as np


def threshold(scores, missed, a, new=(), steps=4.0):
    """Return the threshold after events with these scores, of which some were missed.

    `new` are the numbers of events whose label had never been met.
    """
    level, step, most = a, a / steps, min(1.0, 3.0 * a)
    for n, m in enumerate(missed):
        level = min(level + step * (a - m), most + step * a)
        if n in new:
            level = max(level, -step * (1.0 - a))
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


def chosen_of(scores, past, coverage, by_class, steps=4.0):
    """Return the labels whose scores are within the thresholds after the past events.

    Those are (label, score, missed, new).
    """
    chosen = set()
    for label, score in scores.items():
        of = [one for one in past if one[0] == label] if by_class else past
        new = [n for n, one in enumerate(of) if one[3]]
        own, missed = [one[1] for one in of], [one[2] for one in of]
        if score <= threshold(own, missed, 1.0 - coverage, new, steps):
            chosen.add(label)
    return chosen


def sets_of(stream, coverage, by_class=False, kind="least_ambiguous"):
    """Return the set of each event of a stream of ({label: probability}, label), as Python sets.

    No two labels of an event are equally likely.
    """
    past, found = [], []
    for p, y in stream:
        met = {one[0] for one in past}
        scores = dict.fromkeys((one[0] for one in past), 1.0) | scores_of(p, kind)
        found.append(chosen_of(scores, past, coverage, by_class))
        is_missed = y not in found[-1]
        past.append((y, scores.get(y, 1.0), is_missed, is_missed and y not in met))
    return found


def token_sets_of(stream, coverage, by_class=False):
    """Return the sets of the tokens of sentences: ({label: score} of each token, its label).

    All tokens of a sentence have the thresholds of before it.
    """
    past, found = [], []
    for sentence in stream:
        met, own = {one[0] for one in past}, []
        for scores, y in sentence:
            margins = {
                c: max([scores[d] for d in scores if d != c], default=s) - s
                for c, s in scores.items()
            }
            found.append(chosen_of(margins, past, coverage, by_class, 16.0))
            is_missed = y not in found[-1]
            own.append((y, margins.get(y, np.inf), is_missed, is_missed and y not in met))
        past += own
    return found
