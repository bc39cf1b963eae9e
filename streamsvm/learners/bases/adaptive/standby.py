"""The models of an `AdaptiveSVMClassifier` that do not predict learn later, or sleep.

The model in use learns each example at once. The others learn the last `EVERY` examples together,
or `EVERY_IF_CALM`, which takes a fraction of the time: they are not asked for predictions
meanwhile. While errors do not become more, only the best of them learns. The rest sleep, until
errors have become more, and are looked at when the number of examples is a power of two: then they
learn the last examples, as many as are kept.
"""

from __future__ import annotations

from typing import Any

from streamsvm.learners.bases.adaptive import members
from streamsvm.solvers.adaptive import step
from streamsvm.solvers.adaptive.state import IN_USE

EVERY = 32
"""The models are compared at multiples of this number of examples."""

EVERY_IF_CALM = 128
"""The same, while errors do not become more, once scale and width were found."""

SLEEP_EVERY, SLEEP_FROM = 256, 512
"""At multiples of this number of examples models may fall asleep, from so many on."""

LONG = 1024
"""Errors that have been more for so many examples are what is usual now: models may sleep."""

RENEWED_AT = (32, 128, 1024)
"""The numbers of examples of the first model at which the others take its scale and gamma: it
tries them at powers of two, but to learn all examples anew each time takes as long."""


def note_predictions(learner: Any) -> None:
    """Count the errors of the last predictions, which the model in use made.

    Parameters
    ----------
    learner
        An `AdaptiveSVMClassifier`; the caller holds its lock.

    """
    state = learner._state
    n = int(state.waiting[state.info[IN_USE]])
    if n:
        predicted = learner._recent.last(n, len(learner._schema)).marks > 0
        step.note_predictions(state, predicted)


def is_calm(learner: Any) -> bool:
    """Tell whether it is enough to compare the models at multiples of `EVERY_IF_CALM`."""
    risen = int(learner._state.risen[0])
    if risen and (risen < LONG or risen % EVERY_IF_CALM == 0):
        return False
    return bool(learner._members[0].n_examples > SLEEP_EVERY)


def _is_alarmed(state: Any) -> bool:
    return 0 < state.risen[0] < LONG


def catch_up(learner: Any) -> None:
    """Let the models that are awake, but for the one in use, learn the examples they wait for.

    Parameters
    ----------
    learner
        An `AdaptiveSVMClassifier`; the caller holds its lock.

    """
    state, d, seen = learner._state, len(learner._schema), learner._labels.seen
    for m in range(len(members.KINDS)):
        waiting = int(state.waiting[m])
        if m == state.info[IN_USE] or not waiting or state.asleep[m]:
            continue
        examples = learner._recent.last(waiting, d)
        if m < len(learner._members):
            wrong = members.learn_examples(learner._members[m], examples, seen)
        else:
            # Until there are all models, the others count as the first.
            wrong = examples.marks > 0
        step.fade(state, m, wrong)


def choose(learner: Any, n: int) -> None:
    """Choose the model that predicts from now on, after n examples, a multiple of `EVERY`.

    Parameters
    ----------
    learner
        An `AdaptiveSVMClassifier` whose models have caught up; the caller holds its lock.
    n
        The number of examples that it has learnt.

    """
    state = learner._state
    may_sleep = n % SLEEP_EVERY == 0 and learner._members[0].n_examples >= SLEEP_FROM
    if (_is_alarmed(state) or (may_sleep and n & (n - 1) == 0)) and state.asleep.any():
        state.asleep[:] = 0
        catch_up(learner)
    step.choose(state)
    if may_sleep and not _is_alarmed(state):
        step.fall_asleep(state)
        if learner._members[0]._trial is not None:
            # The others wait for the scale and the width that it finds.
            state.asleep[0] = 0
    if hasattr(learner, "_is_rehearsal_copy"):
        # So that what each of them needs to predict is compiled.
        state.asleep[:] = 0
        state.info[IN_USE] = n // EVERY % len(learner._members)
