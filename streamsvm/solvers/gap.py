"""The measured duality gap on the examples that a solver keeps, from the gradients it has of them.

The gap of each family stands beside its solver: `lasvm.gap`, `larank.finish`, `tracking.finish`.
"""

from __future__ import annotations

from typing import NamedTuple


class KeptGap(NamedTuple):
    """The gap on the examples kept, not normalised."""

    total: float  # P - D over the examples kept
    cost: float  # sum of their C_i

    @property
    def normalised(self) -> float:
        """The gap divided by the sum of the C_i; 0 without examples."""
        return self.total / self.cost if self.cost > 0.0 else 0.0
