"""A short stream that makes a learner compile what a long one would need later.

Functions are compiled when they are first called: a rate is searched after 1,024 events, a budget
is squeezed when it is full, a third class may come after hours. A rehearsal brings all that about
with a clone and made-up events, so that the real stream does not halt for it.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

import numpy as np

N_EVENTS = 1100
"""Events of a rehearsal: the last change of rate and kernel width comes after 1,024."""

# Bounds are reached early: the functions that keep them are the same for each number.
_BOUNDS = {
    "max_support_vectors": 40,
    "window": 200,
    "reservoir": 100,
}


def understudy(model: Any, **changes: Any) -> Any:
    """Return a new learner with a learner's parameters, bounded early, that compiles the same.

    Parameters
    ----------
    model
        A learner.
    **changes
        Parameters to be changed; those that it does not take are left out.

    """
    known = inspect.signature(type(model)).parameters.keys()
    for name, most in _BOUNDS.items():
        bound = getattr(model, name, None) if name in known else None
        if bound is not None:
            changes.setdefault(name, min(bound, most))
    new = model.clone({name: value for name, value in changes.items() if name in known})
    new._is_understudy = True
    return new


def compile_ahead(model: Any) -> None:
    """Compile what later events of a learner need; its first one was not in the cache either."""
    if not hasattr(model, "_is_understudy"):
        # Whatever cannot learn made-up events compiles in its stream.
        with contextlib.suppress(Exception):
            rehearse_events(understudy(model))


def made_up(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of three features and labels, not separable: they depend on nothing else."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    return x, (x[:, 0] * x[:, 1] > 0) ^ (rng.random(n) < 0.2)


def rehearse_events(model: Any) -> None:
    """Predict and learn made-up events with an understudy, through all that may come late.

    Parameters
    ----------
    model
        An `understudy`; it has learnt nothing yet, and is of no use afterwards.

    """
    x, labels = made_up(N_EVENTS)
    for i, (row, label) in enumerate(zip(x.tolist(), labels.tolist(), strict=True)):
        event: dict[Any, float] = dict(enumerate(row))
        if i < 3 or i > N_EVENTS - 4:
            model.predict_one(event)
            model.predict_proba_one(event)
            model.decision_function_one(event)
        model.learn_one(event, label)
    # Features come later than others, and examples with weights.
    for i in range(3):
        wider = {**event, f"later {i}": 1.0}
        model.predict_one(wider)
        model.learn_one(wider, i == 1, w=2.0)
    model.learn_one({f"at once {i}": 1.0 for i in range(40)}, True)
    if model.most_classes is None:
        for label in ("third", "fourth", True):
            model.learn_one(event, label)
            model.predict_one(event)
            model.predict_proba_one(event)
