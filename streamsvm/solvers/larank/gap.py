"""The measured duality gap of LaRank, on the examples kept.

For several classes, without bias, and with a_i^c = -beta_i^c >= 0 for c other than y_i::

    gap = sum_i [ C_i max(0, max_c h_i(c)) - sum_c a_i^c h_i(c) ],   h_i(c) = g_{i,y_i} - g_{i,c}
"""

from __future__ import annotations

from streamsvm._compile import compiled
from streamsvm.solvers.gap import KeptGap


@compiled
def _larank(state):
    total, costs = 0.0, 0.0
    for s in range(state.info[0].n):
        cost = state.cost[s]
        if cost == 0.0:
            continue
        own, most = state.gradient[state.y[s], s], 0.0
        for c in range(state.info[0].n_classes):
            h = own - state.gradient[c, s]
            most = max(most, h)
            at = state.place[c, s]
            if c != state.y[s] and at >= 0:
                total += state.coefficient[c, at] * h
        total += cost * most
        costs += cost
    return total, costs


def larank_gap(state) -> KeptGap:
    """Return the gap over the support patterns of a `LaRankState`."""
    total, cost = _larank(state)
    return KeptGap(total, cost)
