"""The models of an `AdaptiveSVMClassifier` that do not predict learn later, or sleep.

The model in use learns each example at once. The others learn the last `EVERY` examples together,
or `EVERY_IF_CALM`, which takes a fraction of the time: they are not asked for predictions
meanwhile. While errors do not become more, only the best of them learns. The rest sleep, until
errors have become more, and are looked at when the number of examples is a power of two: then they
learn the last examples, as many as are kept.

A model that wakes, or begins anew, may have so much to learn that a stream would wait for it. So it
learns a part after each comparison, and predicts when it has learnt all. The parts are bounded by
counts, not by the clock: the same examples always lead to the same models. Callers hold the
learner's lock.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamsvm.models.contest import choice, members
from streamsvm.models.contest.choice import IN_USE, AdaptiveState
from streamsvm.models.contest.errors import learn_examples
from streamsvm.models.contest.group import N_MODELS, Group
from streamsvm.models.contest.work import Work
from streamsvm.models.kept_examples import Examples

EVERY = 32
"""The models are compared at multiples of this number of examples."""

EVERY_IF_CALM = 128
"""The same, while errors do not become more, once scale and width were found."""

SLEEP_EVERY, SLEEP_FROM = 256, 512
"""At multiples of this number of examples models may fall asleep, from so many on."""

LONG = 1024
"""Errors that have been more for so many examples are what is usual now: models may sleep."""

BUDGET = 4e7
"""What models learn after a comparison, in about nanoseconds (see `Work`)."""

RENEWED_AT = (32, 128, 1024)
"""The numbers of examples of the first model at which the others take its scale and gamma: it
tries them at powers of two, but to learn all examples anew each time takes as long."""


def note_predictions(group: Group) -> None:
    """Count the errors of the last predictions, which the model in use made."""
    state = group.state
    n = int(state.waiting[state.info[IN_USE]])
    if n:
        predicted = group.recent.last(n, group.n_features).marks > 0
        choice.note_predictions(state, predicted)


def is_calm(group: Group, n: int) -> bool:
    """Tell whether after n examples it is too early to compare the models.

    While all is calm it is enough at multiples of `EVERY_IF_CALM`.
    """
    state, since = group.state, n % EVERY_IF_CALM
    risen = int(state.risen[0])
    if not since or (risen and (risen < LONG or risen % EVERY_IF_CALM == 0)):
        return False
    is_behind = (state.waiting > since) & (state.asleep == 0)
    return bool(group.models[0].n_examples > SLEEP_EVERY and not is_behind.any())


def _is_alarmed(state: Any) -> bool:
    return 0 < state.risen[0] < LONG


def catch_up(group: Group, budget: float = BUDGET, fewest: int = 2 * EVERY) -> float:
    """Let the models that are awake, but for the one in use, learn the examples they wait for.

    Called after `note_predictions`. Models that are behind wait with the rest when the budget is
    spent. The first of them learns at least `fewest` examples, the others `EVERY` at most: so they
    catch up at some time, one after the other. Returns what is left of the budget.
    """
    state = group.state
    for m in range(N_MODELS):
        waiting = int(state.waiting[m])
        if not waiting or state.asleep[m]:
            continue
        examples = group.recent.last(waiting, group.n_features)
        if m >= len(group.models):
            # Until there are all models, the others count as the first.
            choice.fade(state, m, examples.marks > 0)
            continue
        # Of what is not kept any more it learns nothing.
        uncounted = max(0, int(state.uncounted[m]) - waiting + len(examples.classes))
        work = Work(group.models[m])
        work.expect(examples.x)
        # What is usual between two comparisons is learnt at once: in parts it takes longer.
        least = EVERY_IF_CALM if waiting <= EVERY_IF_CALM and fewest else fewest
        n = work.affordable(budget, waiting, least)
        if not n:
            continue
        wrong = learn_examples(group.models[m], examples.part(0, n)).wrong
        n = len(wrong)
        choice.fade(state, m, wrong[uncounted:], len(examples.classes) - n)
        state.uncounted[m] = max(0, uncounted - n)
        budget = max(0.0, budget - work.of_next(n))
        if state.waiting[m]:
            fewest = min(fewest, EVERY)
    return budget


def begun_anew(
    group: Group, state: AdaptiveState, factors: list[float], examples: Examples
) -> dict[str, Any]:
    """Return what changes in a group whose models begin anew; `state` is a copy, and updated.

    The first learns the examples now, the others by `go_on_with`.
    """
    first, n = members.new_first(group, factors), len(examples.classes)
    if n:
        if first.preparation.trial is not None:
            first.preparation.trial.expect(n)
        learn_examples(first, examples)
    kinds = members.kinds_of(len(factors))[1 : len(group.models)]
    models = [first, *(members.new_other(group, factors, first, kind) for kind in kinds)]
    used, state.info[IN_USE] = int(state.info[IN_USE]), 0
    state.asleep[:] = state.waiting[:] = state.uncounted[:] = 0
    state.waiting[1 : len(models)] = state.uncounted[1 : len(models)] = n
    return {"models": models, "state": state, "used_before": used}


def use_first(group: Group) -> None:
    """Use the first model, which learns at once what it waits for."""
    state = group.state
    if state.waiting[0]:
        examples = group.recent.last(int(state.waiting[0]), group.n_features)
        choice.fade(state, 0, learn_examples(group.models[0], examples).wrong)
    state.info[IN_USE] = state.asleep[0] = 0


def renew_others(group: Group, budget: float) -> None:
    """Let the other models compare rows as the first one does, if it does so for long.

    Those that begin anew learn within the budget: see `catch_up`.
    """
    first, state = group.models[0], group.state
    if first.preparation.trial is not None and first.n_examples not in RENEWED_AT:
        return
    used, models = int(state.info[IN_USE]), [first]
    for m, kind in enumerate(members.kinds_of(group.n_classes)[1:], start=1):
        model = group.models[m] if m < len(group.models) else None
        if model is None or not members.follows(model, first, kind):
            model = members.new_other(group, group.factors_of_classes, first, kind)
            state.waiting[m] = min(first.n_examples, group.recent.n_examples)
            state.uncounted[m] = 0
            if state.asleep[m]:
                # What it erred as it was before says nothing. Of several classes the models are of
                # two algorithms, so that this one is compared once more.
                state.faded[m] = state.faded[used]
                state.asleep[m] = int(group.outputs.has_one_margin)
            if m == used:
                use_first(group)
        models.append(model)
    group.models = models
    go_on_with(group, used, budget)


def go_on_with(group: Group, used: int, budget: float) -> None:
    """Let models catch up; use the first until the one in use has learnt what it waits for."""
    catch_up(group, budget, 0)
    if not group.state.waiting[used]:
        group.state.info[IN_USE] = used


def choose(group: Group, n: int, budget: float) -> float:
    """Choose the model that predicts from now on, after n examples, a multiple of `EVERY`.

    Called after `catch_up`. Models that wake learn within the budget; returns what is left of it.
    """
    state, away, hopeless = group.state, choice.AWAY, choice.HOPELESS
    if not group.outputs.has_one_margin:
        away, hopeless = choice.AWAY_OF_SEVERAL, choice.HOPELESS_OF_SEVERAL
    slept = state.asleep > 0
    may_sleep = n % SLEEP_EVERY == 0 and group.models[0].n_examples >= SLEEP_FROM
    if (_is_alarmed(state) or (may_sleep and n & (n - 1) == 0)) and state.asleep.any():
        choice.wake(state, math.inf if _is_alarmed(state) else hopeless)
        for m in np.flatnonzero(slept & (state.asleep == 0)).tolist():
            solver = group.models[m].solver
            solver.renew_cache(solver.cache_bytes)
        budget = catch_up(group, budget, 0)
    choice.choose(state)
    if may_sleep and not _is_alarmed(state):
        choice.fall_asleep(state, away)
        if group.models[0].preparation.trial is not None:
            # The others wait for the scale and the width that it finds.
            state.asleep[0] = 0
        for m in np.flatnonzero(~slept & (state.asleep > 0)).tolist():
            # What it kept for learning fast is of no use meanwhile.
            group.models[m].solver.renew_cache(0)
    if group.is_rehearsal:
        # So that what each of them needs to predict is compiled.
        state.asleep[:] = 0
        state.info[IN_USE] = n // EVERY % len(group.models)
    return budget
