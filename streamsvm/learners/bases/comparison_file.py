"""A comparison as read from a model file, which may be anybody's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamsvm.confidence.comparison import NAMES, Comparison
from streamsvm.confidence.sequence import BETS
from streamsvm.model_files.json_values import checked
from streamsvm.support.declaration import as_float, as_int

_COUNTS = ("n_seen", "n", "only_a", "only_b", "both")
_LOSSES = ("loss_a", "loss_b")


def comparison_of(content: dict[str, Any]) -> Comparison:
    """Return what `Comparison.as_json` described; raise ValueError if it does not hold together."""
    largest, kept = content.get("largest_loss"), checked(content.get("kept"), dict, "kept")
    largest = None if largest is None else as_float("largest_loss", largest)
    level, warm_up = as_float("level", content.get("level")), content.get("warm_up")
    if not 0.0 < level < 1.0 or (largest is not None and not 0.0 < largest < math.inf):
        raise ValueError("the level, or the largest loss, is out of range")
    found = Comparison(level, largest, as_int("warm_up", warm_up, 0), kept)
    for name in _COUNTS:
        setattr(found, name, as_int(name, content.get(name), 0))
    for name in _LOSSES:
        value = as_float(name, content.get(name))
        if not 0.0 <= value <= found.n * (1.0 if largest is None else largest) * (1.0 + 1e-9):
            raise ValueError(f"{name} is out of range")
        setattr(found, name, value)
    if not found.only_a + found.only_b + found.both <= found.n <= found.n_seen:
        raise ValueError("more events are counted than there were")
    first = checked(content.get("first"), dict, "first")
    found.first = {name: as_int("first", n, 1, found.n) for name, n in first.items()}
    if not found.first.keys() <= set(NAMES):
        raise ValueError("first names another model")
    if content.get("outcome") is not None:
        found.outcome = checked(content["outcome"], dict, "the outcome")
        if found.outcome.get("in_use") not in NAMES:
            raise ValueError("the outcome names another model")
    if found.gains is not None:
        gains = np.array(checked(content.get("gains"), list, "gains"), float)
        if gains.shape != (2, len(BETS)) or not np.isfinite(gains).all():
            raise ValueError("gains are not those of the bets")
        found.gains = gains
    return found
