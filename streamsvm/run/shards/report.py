"""What happened in each round, and how far the model is from the optimum of all rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamsvm.run.report import largest


@dataclass
class Round:
    """One round: all shards evaluated a model.

    Attributes
    ----------
    primal, dual, gap
        The objectives of the whole problem at this model, and their difference.
    n_support_vectors
        Of the model; 0 of a linear one.
    n_violating
        How many rows violate the margin that the model lacks; of a linear one, that violate it.
    seconds
        By the clock, since the round before.

    """

    primal: float
    dual: float
    gap: float
    n_support_vectors: int
    n_violating: int
    seconds: float

    @property
    def relative_gap(self) -> float:
        """The gap divided by the dual: the objective is larger than the lowest by at most this."""
        return self.gap / self.dual if self.dual > 0.0 else float("inf")


@dataclass
class ShardsReport:
    """The result of `train_on_shards`.

    Attributes
    ----------
    rows, shards
        How many there are.
    reached
        Whether the gap wanted was reached, and is not smaller than `rounding`.
    reason
        Why it was not reached; empty if it was.
    rounding
        By how much the gap may be wrong because kernel values are in single precision, divided by
        the dual: measured on a sample of rows.
    clipped
        The scaler's `n_clipped`: how many values lie far from the mean, of features with any. They
        count less in its mean and variance.
    rounds
        See `Round`.

    """

    rows: int = 0
    shards: int = 0
    reached: bool = False
    reason: str = ""
    rounding: float = 0.0
    clipped: dict[str, int] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """The gap of the model, divided by its dual."""
        return self.rounds[-1].relative_gap

    @property
    def far_values(self) -> str:
        """How many values are far from the mean, and of which features: `clipped` as a text."""
        most = largest(self.clipped, 5)
        return f"values far from the mean, which count less in the scale: {most}"

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> ShardsReport:
        """Return the report of which `asdict` made this."""
        return cls(**{**content, "rounds": [Round(**r) for r in content["rounds"]]})

    def __str__(self) -> str:
        """Return a table of the rounds, and what else is known."""
        lines = ["round        primal          dual   gap/dual  vectors  violating  seconds"]
        for i, r in enumerate(self.rounds, 1):
            lines.append(
                f"{i:5d} {r.primal:13.6g} {r.dual:13.6g} {r.relative_gap:10.2e} "
                f"{r.n_support_vectors:8,} {r.n_violating:10,} {r.seconds:8.2f}"
            )
        lines.append(f"rows {self.rows:,}, shards {self.shards:,}; rounding {self.rounding:.1e}")
        if self.clipped:
            lines.append(self.far_values)
        if self.reason:
            lines.append(f"not reached: {self.reason}")
        return "\n".join(lines)
