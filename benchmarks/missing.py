"""Missing values by each rule: ``python -m benchmarks.missing``.

Some of the values of features far from 0 are missing, as None, NaN or without a key. Printed: the
share of events predicted right before they were learnt. "by hand" takes the mean so far in front of
the learner, "whole" is the stream before any value was taken out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.common import error_of
from streamsvm import AdaptiveSVMClassifier, LASVMClassifier, StandardScaler

N, D, SHARES = 5000, 6, (0.1, 0.15, 0.2)


def whole(rng: np.random.Generator) -> tuple[np.ndarray, list[bool]]:
    """Return rows of features with means from 20 to 100, and labels of two rings of classes."""
    x = rng.normal(size=(N, D))
    y = (x[:, :4] ** 2).sum(axis=1) + 0.5 * x[:, 4] > 3.5
    return x + np.linspace(20.0, 100.0, D), y.tolist()


def events_of(x: np.ndarray, is_missing: np.ndarray) -> list[dict[str, Any]]:
    """Return rows as events that lack values in each of the three ways."""
    events = []
    for i, (row, gone) in enumerate(zip(x.tolist(), is_missing.tolist(), strict=True)):
        event: dict[str, Any] = {}
        for c, value in enumerate(row):
            if gone[c] and (i + c) % 3 == 0:
                continue
            event[f"x{c}"] = (None if (i + c) % 3 == 1 else math.nan) if gone[c] else value
        events.append(event)
    return events


def by_hand(x: np.ndarray, is_missing: np.ndarray) -> np.ndarray:
    """Return rows with the mean so far in the place of missing values."""
    known = np.cumsum(~is_missing, axis=0) - ~is_missing
    sums = np.cumsum(np.where(is_missing, 0.0, x), axis=0) - np.where(is_missing, 0.0, x)
    return np.where(is_missing, sums / np.maximum(known, 1), x)


def main() -> None:
    """Print a table."""
    print('| learner | missing | "zero" | "mean" | by hand | whole |')
    print("|---|---|---|---|---|---|")
    makers: dict[str, Any] = {
        "LASVM": LASVMClassifier,
        "adaptive": AdaptiveSVMClassifier,
        "scaler, LASVM": lambda **given: StandardScaler() | LASVMClassifier(**given),
    }
    for name, make in makers.items():
        for share in SHARES:
            rng = np.random.default_rng(0)
            x, labels = whole(rng)
            is_missing = rng.random(x.shape) < share
            given, nothing = events_of(x, is_missing), np.zeros_like(is_missing)
            errors = [
                error_of(model, zip(events, labels, strict=True))
                for model, events in (
                    (make(missing="zero"), given),
                    (make(), given),
                    (make(), events_of(by_hand(x, is_missing), nothing)),
                    (make(), events_of(x, nothing)),
                )
            ]
            shown = " | ".join(f"{100.0 - error:.1f}" for error in errors)
            print(f"| {name} | {share:.0%} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
