"""Whether models should begin anew: a fresh one that has learnt only the last examples errs less.

A drift makes what was learnt before it wrong. So when errors have become more, a fresh model learns
the last examples, of which the older half is not counted. If it errs less on the newer half than
the predictions that were made did, more clearly than by chance, all models begin anew with these
examples. Else nothing has changed, and nothing is lost. The fresh model compares rows as the model
in use does; if that does not help, another one finds scale and width itself, by the older half: the
features may have got other units.
"""

from __future__ import annotations

import math
from typing import Any

from streamsvm.models.adaptive import members
from streamsvm.models.adaptive.group import Group
from streamsvm.models.kept_examples import Examples
from streamsvm.solvers.adaptive.state import IN_USE

LENGTHS = (256, 1024)
"""How many of the last examples a fresh model learns; the first that convinces is taken."""

EVERY = (64, 256)
"""After how many examples with more errors such a model is tried, and tried again: later, after
half as many again as there were, as what did not help so far may not help at all."""

LENGTH_OF_TRIAL, EVERY_TRIAL = 256, 256
"""The same of a fresh model that finds scale and width itself, which takes four times as long."""

CLEARLY = 2.5
"""By how many standard deviations of their difference it must err less (McNemar's test)."""


def examples_for(group: Group) -> Examples | None:
    """Return the examples with which the models of a learner should begin anew; None: with none.

    The learner is not changed; the caller holds its lock.
    """
    state, d = group.state, group.n_features
    used, risen = int(state.info[IN_USE]), int(state.risen[0])
    for length, every in zip(LENGTHS, EVERY, strict=True):
        # A model that began not long ago has learnt little else.
        if _is_due(risen, every) and group.in_use.n_examples >= 2 * length:
            examples = group.recent.last(length, d)
            kind = members.kinds_of(group.n_classes)[used]
            fresh = members.new_other(group, group.factors_of_classes, group.models[0], kind)
            if _errs_less(group, fresh, examples):
                return examples
    if _is_due(risen, EVERY_TRIAL) and group.in_use.n_examples >= 2 * LENGTH_OF_TRIAL:
        examples = group.recent.last(LENGTH_OF_TRIAL, d)
        fresh = members.new_first(group, group.factors_of_classes)
        assert fresh.preparation.trial is not None
        fresh.preparation.trial.only_at(LENGTH_OF_TRIAL // 2)
        if _errs_less(group, fresh, examples):
            return examples
    return None


def _is_due(risen: int, every: int) -> bool:
    """Tell whether a model is tried when errors have been more for so many examples."""
    return risen > 0 and risen % max(every, (1 << (risen.bit_length() - 1)) // 2) == 0


def _errs_less(group: Group, fresh: Any, examples: Examples) -> bool:
    """Tell whether a fresh model errs less on the newer half of examples, beyond chance."""
    wrong = members.learn_examples(fresh, examples)
    half = len(wrong) // 2
    before, now = examples.marks[half:] > 0, wrong[half:]
    gained, lost = int((before & ~now).sum()), int((now & ~before).sum())
    return gained - lost > CLEARLY * math.sqrt(gained + lost)
