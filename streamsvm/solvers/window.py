"""A window by class: of a rare class the last examples stay, however long ago they came.

An example is too old when W others have come since, unless it is one of the last of its class: with
K classes at least M = W / (200 K), or 1, of each stay. Of a class with 2 M within the window none
stays longer. To know which they are takes no list of them: the examples of a class are counted in
generations of M; those of the present and of the one before never leave by age. So W + 2 K M are
kept at most, or if W is not less than 200 K, 1.01 W. (When classes are added M falls, and of
earlier ones that come no more as many stay as before.)

More of them would remember longer: too long for what drifts, and the more they are beside the
others, which come from W examples, the more they outweigh these.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.support.declaration import COUNT, field

N_COUNTS = 3
COUNTED, BEGAN, BEFORE = range(N_COUNTS)
"""Columns of `recent`, by class: the examples in the present generation; the last number that came
before it; and the last one before the generation that went before."""

RECENT_OF_TWO = field(2, N_COUNTS, dtype=np.int64, range=COUNT)
RECENT = field("classes", N_COUNTS, dtype=np.int64, range=COUNT)


@compiled_inner
def note_class(bounds, recent, c, n_classes, number):
    """Count example `number` of class c, one of `n_classes`."""
    if recent[c, COUNTED] >= max(1.0, np.floor(bounds.window * bounds.rare / n_classes)):
        recent[c, BEFORE] = recent[c, BEGAN]
        recent[c, BEGAN], recent[c, COUNTED] = number - 1, 0
    recent[c, COUNTED] += 1


@compiled_inner
def last_too_old(bounds, recent, c, number):
    """Return the number up to which examples of class c leave when example `number` comes."""
    last = number - np.int64(bounds.window)
    return min(last, recent[c, BEFORE]) if bounds.rare > 0.0 else last
