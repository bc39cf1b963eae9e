"""A comparison as read from a model file, which may be anybody's."""

from __future__ import annotations

import math

import numpy as np

from streamsvm.confidence.comparison import NAMES, Comparison
from streamsvm.confidence.sequence import BETS
from streamsvm.errors import ParameterError
from streamsvm.labels.label_column import Label
from streamsvm.model_files.json_values import Json, checked
from streamsvm.support.declaration import as_float, as_int

_COUNTS = ("n_seen", "n", "only_a", "only_b", "both")
_LOSSES = ("loss_a", "loss_b")


def comparison_of(content: Json) -> Comparison:
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
    if found.gains is not None:
        gains = np.array(checked(content.get("gains"), list, "gains"), float)
        if gains.shape != (2, len(BETS)) or not np.isfinite(gains).all():
            raise ValueError("gains are not those of the bets")
        found.gains = gains
    if content.get("outcome") is not None:
        _check_outcome(content["outcome"], found)
        found.outcome = content["outcome"]
    return found


def _check_outcome(outcome: object, found: Comparison) -> None:
    """Refuse a record that lacks a figure, or has one of another kind."""
    record = checked(outcome, dict, "the outcome")
    if record.get("in_use") not in NAMES or record.get("decision") not in (None, *NAMES):
        raise ValueError("the outcome names another model")
    checked(record.get("why"), str, "why")
    first = checked(record.get("first_known"), dict, "first_known")
    # A record that decides says when: see `decision_in_words`.
    if not {record["decision"]} - {None} <= first.keys() <= set(NAMES):
        raise ValueError("the outcome does not say when it was known")
    figures = found.figures()
    for name in figures.keys() - {"decision", "first_known"}:
        value = record.get(name)
        if not (value is None and name in ("loss_a", "loss_b")):
            as_float(name, value)
    for name in first:
        as_int("first_known", first[name], 1)


def decision_is_missing(figures: dict[str, object]) -> str | None:
    """Stand for the function on_decision of a model that was read from a file."""
    raise ParameterError("files do not hold the function on_decision: set model.on_decision")


def loss_is_missing(y: Label, predicted: Label) -> float:
    """Stand for the loss of a model that was read from a file."""
    raise ParameterError("files do not hold the function loss: set model.loss")
