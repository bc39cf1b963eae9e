"""A learner in words: a short representation, and a table of what it has learnt."""

from __future__ import annotations

import heapq
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from streamsvm.labels.label_column import Label
from streamsvm.monitor.certificate import Certificate

_FIGURES = (
    "tokens learnt",
    "support vectors",
    "support patterns",
    "bias",
    "learning rate",
    "dual objective",
    "delta",
    "drifts",
)
"""What only some learners have, in the order of the table."""

_MOST_FEATURES = 5
_MOST_LISTED = 10


class Summarised(Protocol):
    """What all learners have that have a summary."""

    @property
    def description(self) -> str:
        """The parameters in use that matter most."""

    @property
    def n_examples(self) -> int:
        """Number of examples learnt."""

    @property
    def classes(self) -> list[Label]:
        """The labels seen."""

    @property
    def certificate(self) -> Certificate:
        """A bound on the mean gap, or why there is none."""

    @property
    def memory_usage(self) -> int:
        """Bytes of all arrays."""


def short(learner: object) -> str:
    """Return an expression that creates such a learner, without parameters that are defaults."""
    parameters = inspect.signature(type(learner)).parameters
    given = {name: getattr(learner, name) for name in parameters}
    changed = [f"{n}={v!r}" for n, v in given.items() if v != parameters[n].default]
    return f"{type(learner).__name__}({', '.join(changed)})"


def deciding(relevance: Mapping[Label, float] | None) -> str:
    """Return which features decide, to be appended to what was chosen; "" if all weigh the same."""
    if relevance is None:
        return ""
    first = list(relevance.items())[:_MOST_FEATURES]
    shown = ", ".join(f"{name} {share:.0%}" for name, share in first if share >= 0.005)
    return f"; what decides: {shown}"


def relevance_of(shares: np.ndarray | None, names: Sequence[Label]) -> dict[Label, float] | None:
    """Return how much each feature weighs in distances, those that weigh most first."""
    if shares is None:
        return None
    order = np.argsort(-shares, kind="stable").tolist()
    return {names[j]: float(shares[j]) for j in order if j < len(names)}


def table(learner: Summarised, facts: Mapping[str, Any]) -> str:
    """Return what a learner has learnt, as lines of name and value; the lock is held.

    `facts` are the "features", as names or their number, and what else this one has of `_FIGURES`,
    "duality gap", "largest weights" and "advice".
    """
    features = facts["features"]
    rows = [
        ("parameters", learner.description),
        ("examples learnt", _shown(learner.n_examples)),
        ("features", _counted(features) if isinstance(features, list) else _shown(features)),
        ("classes", _counted(learner.classes)),
        *((name, _shown(facts[name])) for name in _FIGURES if name in facts),
    ]
    if "duality gap" in facts:
        rows.append(("duality gap", f"{_shown(facts['duality gap'])} (of the examples it has)"))
    bound = learner.certificate
    reason = bound.reason.removeprefix("no certificate: ")
    shown = f"none: {reason}" if bound.value is None else f"{_shown(bound.value)} ({reason})"
    rows.append(("certificate", shown))
    if "largest weights" in facts:
        rows += _heaviest(facts["largest weights"])
    if facts.get("advice") is not None:
        rows.append(("advice", facts["advice"]))
    rows.append(("memory", f"{learner.memory_usage / 1e3:,.0f} kB"))
    wide = max(len(name) for name, _ in rows)
    return "\n".join([type(learner).__name__, *(f"  {n:<{wide}}  {value}" for n, value in rows)])


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        more = ", ..." if len(value) > _MOST_LISTED else ""
        shown = list(value.items())[:_MOST_LISTED]
        return ", ".join(f"{label}: {_shown(v)}" for label, v in shown) + more
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _counted(names: list[Label]) -> str:
    """Return a number and the first names of a list."""
    more = ", ..." if len(names) > _MOST_LISTED else ""
    return f"{len(names):,}: {', '.join(map(str, names[:_MOST_LISTED]))}{more}"


def _heaviest(weights: Mapping[Label, Any]) -> list[tuple[str, str]]:
    """Return the features of the largest weights, for several classes those of each class."""
    several = weights and all(isinstance(value, Mapping) for value in weights.values())
    parts = weights.items() if several else [("", weights)]
    rows = []
    for label, part in parts:
        largest = heapq.nlargest(_MOST_FEATURES, part.items(), key=lambda item: abs(item[1]))
        name = f"largest weights, {label}" if several else "largest weights"
        rows.append((name, ", ".join(f"{feature} {weight:+.3g}" for feature, weight in largest)))
    return rows
