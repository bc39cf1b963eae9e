"""A rehearsal: a short made-up stream that compiles the functions a real stream needs later.

Functions are compiled when they are first called, and some are first called late: by the rate
search at 1,024 events, when a budget is full, when a third class appears. A rehearsal calls them
all with a clone of the learner and made-up events, so that the real stream does not stop to
compile.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

import numpy as np

N_EVENTS = 1100
"""Events of a rehearsal: rate and gamma change for the last time after 1,024."""

# Smaller bounds, reached within a rehearsal; the compiled functions do not depend on the number.
_BOUNDS = {
    "max_support_vectors": 40,
    "window": 200,
    "reservoir": 100,
}


def rehearsal_copy(model: Any, **changes: Any) -> Any:
    """Return a clone of a learner for a rehearsal: with small bounds, but the same compiled code.

    Parameters
    ----------
    model
        A learner.
    **changes
        Parameters to change; those that the learner does not take are ignored.

    Returns
    -------
    A learner that has learnt nothing.

    """
    known = inspect.signature(type(model)).parameters.keys()
    for name, most in _BOUNDS.items():
        bound = getattr(model, name, None) if name in known else None
        if bound is not None:
            changes.setdefault(name, min(bound, most))
    new = model.clone({name: value for name, value in changes.items() if name in known})
    new._is_rehearsal_copy = True
    return new


def compile_ahead(model: Any) -> None:
    """Rehearse with a copy of a learner, so that later events need not compile."""
    if not hasattr(model, "_is_rehearsal_copy"):
        # A learner that fails on made-up events (its own kernel, for example) compiles later.
        with contextlib.suppress(Exception):
            rehearse_events(rehearsal_copy(model), _expects_several(model))


def _expects_several(model: Any) -> bool:
    """Tell whether to compile for three or more classes, as well."""
    if model.compiles_classes_apart:
        # Most streams have two, and would wait twice as long for their first predictions.
        return len(model.classes) > 2
    return bool(model.most_classes != 2)


def made_up(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of three features and labels, not separable; always the same ones."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    return x, (x[:, 0] * x[:, 1] > 0) ^ (rng.random(n) < 0.2)


def rehearse_events(model: Any, several: bool) -> None:
    """Predict and learn made-up events, including new features, weights and new classes.

    Parameters
    ----------
    model
        A `rehearsal_copy`, which has learnt nothing yet; it is of no use afterwards.
    several
        Whether to learn a third and a fourth class, too.

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
    if several:
        for label in ("third", "fourth", True):
            model.learn_one(event, label)
            model.predict_one(event)
            model.predict_proba_one(event)
