"""Whether models should begin anew: a fresh one that has learnt only the last examples errs less.

A drift makes what was learnt before it wrong. So when errors have become more, a fresh model learns
the last examples, of which the older half is not counted. If it errs less on the newer half than
the predictions that were made did, more clearly than by chance, all models begin anew with these
examples. Else nothing has changed, and nothing is lost. The fresh model compares rows as the model
in use does; if that does not help, another one finds scale and width itself, by the older half: the
features may have got other units.
"""

from __future__ import annotations

from streamsvm.models.contest import members
from streamsvm.models.contest.choice import IN_USE
from streamsvm.models.contest.errors import are_fewer, learn_examples
from streamsvm.models.contest.group import Group
from streamsvm.models.kept_examples import Examples
from streamsvm.models.kernel.kernel_model import KernelModel

MOST = 1024
"""The most examples that a fresh model learns."""

_TRIED = ((256, 64, False), (MOST, 256, False), (256, 256, True))
"""How many of the last examples a fresh model learns: the first that convinces is taken. After how
many examples with more errors it is tried, and tried again: later, after half as many again as
there were, as what did not help so far may not help at all. And whether it finds scale and width
itself, which takes four times as long."""

_CLEARLY = 2.5
"""By how many standard deviations it must err less: see `are_fewer`."""


def examples_for(group: Group) -> Examples | None:
    """Return the examples with which the models of a group should begin anew; None: with none."""
    risen = int(group.state.risen[0])
    for length, every, is_free in _TRIED:
        is_due = risen > 0 and risen % max(every, (1 << (risen.bit_length() - 1)) // 2) == 0
        # A model that began not long ago has learnt little else.
        if is_due and group.in_use.n_examples >= 2 * length:
            examples, half = group.recent.last(length, group.n_features), length // 2
            wrong = learn_examples(_fresh(group, half if is_free else None), examples).wrong
            if are_fewer(wrong[half:], examples.marks[half:] > 0, _CLEARLY):
                return examples
    return None


def _fresh(group: Group, trial_at: int | None) -> KernelModel:
    """Return a model as the one in use, or which finds scale and width after so many examples."""
    factors = group.factors_of_classes
    if trial_at is None:
        kind = members.kinds_of(group.n_classes)[group.state.info[IN_USE]]
        return members.new_other(group, factors, group.models[0], kind)
    fresh = members.new_first(group, factors)
    assert fresh.preparation.trial is not None
    fresh.preparation.trial.only_at(trial_at)
    return fresh
