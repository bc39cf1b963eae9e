"""Features that most examples lack: zeros that were left out, perhaps, as in sparse formats."""

from __future__ import annotations

import logging
import weakref
from typing import Protocol

from streamsvm.features.missing import EVENTS, PRESENT, VARIED
from streamsvm.features.schema import Schema

_log = logging.getLogger(__name__)

NOTICED_AT = 1024
"""After so many examples zeros that were left out are noticed in the log."""

_noticed: weakref.WeakSet[Schema] = weakref.WeakSet()
"""The schemas for which that was done: several models may share one."""

_FEWEST = 5
"""So many features must be absent in most examples before they look like zeros left out."""


class OfRows(Protocol):
    """What is asked of a learner."""

    schema: Schema

    @property
    def is_sparse(self) -> bool:
        """Whether rows are stored as their nonzero features."""


def zeros_in_words(learner: OfRows) -> str | None:
    """Return a sentence if missing values look like zeros that were left out; None: they do not.

    They do if of the features that were ever missing at least half are missing in most examples,
    while others count as their means. (Of sparse rows all that is absent counts as 0.)
    """
    if learner.is_sparse:
        return None
    names, missing = learner.schema.names, learner.schema.missing
    present, events, varied = missing.statistics[[PRESENT, EVENTS, VARIED], : len(names)]
    n_seldom = int(((varied > 0.0) & (2.0 * present < events)).sum())
    n_means = len(missing.means(names))
    if n_seldom < _FEWEST or 2 * n_seldom < len(missing.counts(names)) or not n_means:
        return None
    return (
        f"{n_seldom:,} of {len(names):,} features are absent in most examples, and {n_means:,} "
        "others count as their mean where they are absent: if absent means 0, as in files of "
        "LIBSVM, missing='zero' (--missing zero) says so"
    )


def notice(learner: OfRows) -> None:
    """Say in the log, once, if missing values look like zeros that were left out."""
    said = zeros_in_words(learner)
    if said is not None and learner.schema not in _noticed:
        _noticed.add(learner.schema)
        _log.warning("%s", said)
