"""What happened in each round, and how far the model is from the optimum of all rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Round:
    """One round: the united model was solved, and all shards evaluated it.

    Attributes
    ----------
    primal, dual, gap
        The objectives of the whole problem at this model, and their difference.
    cost
        The sum of the C_i.
    n_support_vectors
        Of the model.
    n_violating, n_sent
        How many rows that it lacks would change it, and how many of them were sent.
    shard_seconds
        Processor time of each shard.
    united_seconds
        Processor time of learning what was sent, and solving.
    bytes_out, bytes_in
        What each worker was sent, and what all sent back.

    """

    primal: float
    dual: float
    gap: float
    cost: float
    n_support_vectors: int
    n_violating: int
    n_sent: int
    shard_seconds: list[float]
    united_seconds: float
    bytes_out: int
    bytes_in: int

    @property
    def relative_gap(self) -> float:
        """The gap divided by the dual: the objective is larger than the lowest by at most this."""
        return self.gap / self.dual if self.dual > 0.0 else float("inf")


@dataclass
class ShardsReport:
    """The result of `train_on_shards`.

    Attributes
    ----------
    rows
        The number of rows of all shards.
    shards, workers
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
    read_seconds, learn_seconds
        Processor time of each shard to read its rows, and to learn them alone.
    learn_bytes
        What the shards sent then.
    rounds
        See `Round`.

    """

    rows: int = 0
    shards: int = 0
    workers: int = 0
    reached: bool = False
    reason: str = ""
    rounding: float = 0.0
    clipped: dict[str, int] = field(default_factory=dict)
    read_seconds: list[float] = field(default_factory=list)
    learn_seconds: list[float] = field(default_factory=list)
    learn_bytes: int = 0
    rounds: list[Round] = field(default_factory=list)

    @property
    def far_values(self) -> str:
        """How many values are far from the mean, and of which features: `clipped` as a text."""
        most = sorted(self.clipped, key=lambda name: -self.clipped[name])
        shown = ", ".join(f"{name} ({self.clipped[name]:,})" for name in most[:5])
        more = f", and {len(most) - 5:,} more features" if most[5:] else ""
        return f"far from the mean, which count less in the scale: {shown}{more}"

    @property
    def gap(self) -> float:
        """The gap of the model, divided by its dual."""
        return self.rounds[-1].relative_gap

    def seconds(
        self, workers: int | None = None, bytes_per_second: float = 1e9
    ) -> dict[str, float]:
        """Return the time by part, if so many workers share the shards; None: as it was.

        Parameters
        ----------
        workers
            Of a part, the time is that of the worker that takes longest.
        bytes_per_second
            What the coordinator can send, and receive.

        Returns
        -------
        Seconds to ``read``, ``learn`` alone, ``evaluate``, of the ``united`` model, to ``send``.

        """
        n = workers or self.workers or 1

        def longest(seconds: list[float]) -> float:
            return max((sum(seconds[a::n]) for a in range(n)), default=0.0)

        sent = self.learn_bytes + sum(r.bytes_out * n + r.bytes_in for r in self.rounds)
        return {
            "read": longest(self.read_seconds),
            "learn": longest(self.learn_seconds),
            "evaluate": sum(longest(r.shard_seconds) for r in self.rounds),
            "united": sum(r.united_seconds for r in self.rounds),
            "send": sent / bytes_per_second,
        }

    def as_json(self) -> dict[str, Any]:
        """Return what a file keeps of it."""
        return {**vars(self), "rounds": [vars(r) for r in self.rounds]}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> ShardsReport:
        """Return the report of `as_json`."""
        return cls(**{**content, "rounds": [Round(**r) for r in content["rounds"]]})

    def __str__(self) -> str:
        """Return a table of the rounds, and a line of seconds."""
        head = "round        primal          dual   gap/dual  vectors  lacking     sent  united s"
        lines = [head]
        for i, r in enumerate(self.rounds, 1):
            lines.append(
                f"{i:5d} {r.primal:13.6g} {r.dual:13.6g} {r.relative_gap:10.2e} "
                f"{r.n_support_vectors:8,} {r.n_violating:8,} {r.n_sent:8,} {r.united_seconds:9.2f}"
            )
        parts = ", ".join(f"{name} {s:.2f} s" for name, s in self.seconds().items())
        lines.append(f"rows {self.rows:,}, shards {self.shards:,}, workers {self.workers}: {parts}")
        lines.append(f"rounding: {self.rounding:.1e} of the dual")
        if self.clipped:
            lines.append(f"values {self.far_values}")
        if self.reason:
            lines.append(f"not reached: {self.reason}")
        return "\n".join(lines)
