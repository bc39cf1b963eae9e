"""Taking an example back from LASVM as the slow twin does: its coefficient goes to others.

By pair steps of fixed length, each with the partner for which the dual gains most, or loses least.
"""

from tests.reference.slow_incremental import dual_of as dual
from tests.reference.slow_lasvm import SlowLASVM

__all__ = ["dual", "without"]


def without(gram, y, alpha, cost, s):
    """Return the coefficients of all examples when that of example s has gone to others.

    `alpha` is signed, `cost` are the C_i; nothing is changed.
    """
    twin = SlowLASVM(gram, y, cost, 0.0)
    twin.S, twin.alpha, twin.g = list(range(len(y))), alpha.copy(), y - gram @ alpha
    twin.leave(s)
    return twin.alpha
