"""A learner in words: a short representation, and a table of what it has learnt."""

from __future__ import annotations

import heapq
import inspect
from collections.abc import Mapping
from typing import Any

from streamsvm.features.absent import zeros_in_words

_FIGURES = (
    ("tokens learnt", "n_tokens"),
    ("support vectors", "n_support_vectors"),
    ("support patterns", "n_support_patterns"),
    ("bias", "bias_"),
    ("bias", "bias"),
    ("bias", "intercept"),
    ("learning rate", "rate"),
    ("dual objective", "dual"),
    ("delta", "delta"),
    ("drifts", "drifts"),
)
"""Name and attribute of what only some learners have."""

_MOST_FEATURES = 5
_MOST_LISTED = 10


def short(learner: Any) -> str:
    """Return an expression that creates such a learner, without parameters that are defaults."""
    parameters = inspect.signature(type(learner)).parameters
    given = {name: getattr(learner, name) for name in parameters}
    changed = [f"{n}={v!r}" for n, v in given.items() if v != parameters[n].default]
    return f"{type(learner).__name__}({', '.join(changed)})"


def table(learner: Any) -> str:
    """Return what a learner has learnt, as lines of name and value; the lock is held."""
    rows = [
        ("parameters", learner.description),
        ("examples learnt", _shown(learner.n_examples)),
        ("features", _features(learner)),
        ("classes", _counted(learner.classes)),
    ]
    for name, attribute in _FIGURES:
        value = getattr(learner, attribute, None)
        # A parameter of the same name is True or False.
        if value is not None and not isinstance(value, bool):
            rows.append((name, _shown(value)))
    if getattr(learner, "has_dual", False) and hasattr(learner, "duality_gap"):
        rows.append(("duality gap", f"{_shown(learner.duality_gap())} (of the examples it has)"))
    bound = learner.certificate
    reason = bound.reason.removeprefix("no certificate: ")
    shown = f"none: {reason}" if bound.value is None else f"{_shown(bound.value)} ({reason})"
    rows.append(("certificate", shown))
    if hasattr(learner, "weights"):
        rows += _heaviest(learner.weights)
    if (advice := zeros_in_words(learner)) is not None:
        rows.append(("advice", advice))
    rows.append(("memory", f"{learner.memory_usage / 1e3:,.0f} kB"))
    wide = max(len(name) for name, _ in rows)
    return "\n".join([type(learner).__name__, *(f"  {n:<{wide}}  {value}" for n, value in rows)])


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        more = ", ..." if len(value) > _MOST_LISTED else ""
        shown = list(value.items())[:_MOST_LISTED]
        return ", ".join(f"{label}: {_shown(v)}" for label, v in shown) + more
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _features(learner: Any) -> str:
    """Return the number of features, and the first ones if their names are kept."""
    if hasattr(learner, "feature_names"):
        return _counted(learner.feature_names)
    return _shown(learner.n_features)


def _counted(names: list[Any]) -> str:
    """Return a number and the first names of a list."""
    more = ", ..." if len(names) > _MOST_LISTED else ""
    return f"{len(names):,}: {', '.join(map(str, names[:_MOST_LISTED]))}{more}"


def _heaviest(weights: Mapping[Any, Any]) -> list[tuple[str, str]]:
    """Return the features of the largest weights, for several classes those of each class."""
    several = weights and all(isinstance(value, Mapping) for value in weights.values())
    parts = weights.items() if several else [("", weights)]
    rows = []
    for label, part in parts:
        largest = heapq.nlargest(_MOST_FEATURES, part.items(), key=lambda item: abs(item[1]))
        name = f"largest weights, {label}" if several else "largest weights"
        rows.append((name, ", ".join(f"{feature} {weight:+.3g}" for feature, weight in largest)))
    return rows
