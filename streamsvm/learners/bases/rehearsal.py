"""A rehearsal: a short made-up stream that compiles the functions a real stream needs later.

Functions are compiled when they are first called, and some are first called late: by the rate
search at 1,024 events, when a budget is full, when a third class appears. A rehearsal calls them
all with a clone of the learner and made-up events, so that the real stream does not stop to
compile.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from streamsvm.features.missing import EVENTS
from streamsvm.labels.label_column import Label
from streamsvm.models.model import Model
from streamsvm.support import density

N_EVENTS = 1100
"""Events of a rehearsal: rate and gamma change for the last time after 1,024."""

LOOK = 64
"""After so many events what the rest of the stream may need is compiled: see `look`."""

_CHANGE = 32
"""After so many made-up events classes are more, and rows become sparse."""

# Smaller bounds, reached within a rehearsal; the compiled functions do not depend on the number.
_BOUNDS = {"max_support_vectors": 40, "window": 200, "reservoir": 100}


def rehearsal_copy(learner: Any, **changes: object) -> Any:
    """Return a clone of a learner for a rehearsal: with small bounds, but the same compiled code.

    `changes` are parameters; those that the learner does not take are ignored.
    """
    given = learner._get_params()
    for name, most in _BOUNDS.items():
        bound = given.get(name)
        if bound is not None:
            changes.setdefault(name, min(bound, most))
    changes.setdefault("selection", None)
    new = learner.clone({name: value for name, value in changes.items() if name in given})
    new.is_rehearsal_copy = True
    # Learners of sentences have none, or something else of this name.
    if isinstance(of_new := getattr(new, "model", None), Model):
        of_new.is_rehearsal = True
    return new


is_on = True
"""Whether functions are compiled ahead; tests compile what they need only."""

_looked_for: set[tuple[Any, ...]] = set()


def compile_ahead(learner: Any, turns_sparse: bool = False) -> None:
    """Rehearse with a copy of a learner that has learnt an event: later ones need not compile.

    `turns_sparse` tells whether its rows, which are dense at first, become sparse.
    """
    if is_on and not learner.is_rehearsal_copy:
        turns_sparse = turns_sparse or learner.is_sparse
        # A learner that fails on made-up events (its own kernel, for example) compiles later.
        with contextlib.suppress(Exception):
            rehearse_events(rehearsal_copy(learner), _expects_several(learner), turns_sparse)


def look(learner: Any) -> None:
    """Compile for sparse rows after the first events, if these look so; once in a process."""
    if learner.n_examples != LOOK:
        return
    given = learner._get_params()
    if given.get("sparse", False) is not None:
        return
    key = type(learner), type(given.get("kernel")), _expects_several(learner)
    if not is_on or key in _looked_for or learner.is_rehearsal_copy:
        return
    if learner.is_sparse or (
        _may_widen(learner) and density.may_become_sparse(learner.model.dense_rows())
    ):
        _looked_for.add(key)
        compile_ahead(learner, turns_sparse=True)


def _may_widen(learner: Any) -> bool:
    """Tell whether rows are wide enough to become sparse, or still get further features.

    Words come all the time. Dozens of flags that each event lists do not get more: to compile for
    sparse rows, which never come, takes longer than to learn thousands of these.
    """
    d = len(learner.schema)
    since_first = learner.schema.missing.statistics[EVENTS, :d]
    return d >= density.FEWEST_FEATURES or bool((since_first <= LOOK // 2).any())


def _expects_several(learner: Any) -> bool:
    """Tell whether to compile for three or more classes, as well."""
    if learner.compiles_classes_apart:
        # Most streams have two, and would wait twice as long for their first predictions.
        return len(learner.classes) > 2
    return bool(learner.most_classes != 2)


def made_up(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of three features and labels, not separable; always the same ones."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    return x, (x[:, 0] * x[:, 1] > 0) ^ (rng.random(n) < 0.2)


def rehearse_events(learner: Any, several: bool, turns_sparse: bool = False) -> None:
    """Predict and learn made-up events, including new features, weights and new classes.

    The learner is a `rehearsal_copy`, of no use afterwards. If it takes `several` classes, it
    learns a third and a fourth one.
    """
    x, labels = made_up(N_EVENTS)
    for i, (row, label) in enumerate(zip(x.tolist(), labels.tolist(), strict=True)):
        event: dict[Label, float] = dict(enumerate(row))
        if i == _CHANGE and turns_sparse:
            learner.model.become_sparse()
        if i < 3 or i - _CHANGE in (0, 1, 2) or i > N_EVENTS - 4:
            learner.predict_one(event)
            learner.predict_proba_one(event)
            learner.decision_function_one(event)
        is_third = several and i >= _CHANGE and row[2] > 1.0
        learner.learn_one(event, "third" if is_third else label)
    # Features come later than others, and examples with weights.
    for i in range(3):
        wider = {**event, f"later {i}": 1.0}
        learner.predict_one(wider)
        learner.learn_one(wider, i == 1, w=2.0)
    learner.learn_one({f"at once {i}": 1.0 for i in range(40)}, True)
    if several:
        for label in ("third", "fourth", True):
            learner.learn_one(event, label)
            learner.predict_one(event)
            learner.predict_proba_one(event)
