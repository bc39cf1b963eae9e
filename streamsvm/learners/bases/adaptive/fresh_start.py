"""Whether models should begin anew: a fresh one that has learnt only the last examples errs less.

A drift makes what was learnt before it wrong. So when errors have become more, a fresh model learns
the last examples, of which the older half is not counted. If it errs less on the newer half than
the predictions that were made did, more clearly than by chance, all models begin anew with these
examples. Else nothing has changed, and nothing is lost.
"""

from __future__ import annotations

import math
from typing import Any

from streamsvm.learners.bases.adaptive import members
from streamsvm.learners.bases.kept_examples import Examples
from streamsvm.solvers.adaptive.state import IN_USE

LENGTHS = (256, 1024)
"""How many of the last examples a fresh model learns; the first that convinces is taken."""

EVERY = (64, 256)
"""The multiples of examples at which such a model is tried."""

CLEARLY = 2.5
"""By how many standard deviations of their difference it must err less (McNemar's test)."""


def examples_for(learner: Any, n: int) -> Examples | None:
    """Return the examples with which the models of a learner should begin anew; None: with none.

    Parameters
    ----------
    learner
        An `AdaptiveSVMClassifier`, which is not changed; the caller holds its lock.
    n
        The number of examples that it has learnt.

    """
    used, d = int(learner._state.info[IN_USE]), len(learner._schema)
    for length, every in zip(LENGTHS, EVERY, strict=True):
        # A model that began not long ago has learnt little else.
        if n % every or learner.in_use.n_examples < 2 * length:
            continue
        examples = learner._recent.last(length, d)
        fresh = members.new_other(learner, learner._members[0], members.KINDS[used])
        wrong = members.learn_examples(fresh, examples, learner._labels.seen)
        half = length // 2
        before, now = examples.marks[half:] > 0, wrong[half:]
        gained, lost = int((before & ~now).sum()), int((now & ~before).sum())
        if gained - lost > CLEARLY * math.sqrt(gained + lost):
            return examples
    return None
