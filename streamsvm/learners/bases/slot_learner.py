"""What LASVM and LaRank show alike: both keep examples in slots, dead ones among them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.learners.bases.kernel_learner import KernelLearner

_FIELDS = {"steps": "n_steps", "null_steps": "n_null"}
_CACHED = ("cached_rows_hit", "cached_rows_missed", "cached_rows_extended")


class SlotLearner(KernelLearner):
    """A kernel learner whose state has slots, an `info` with counts, and a cache of kernel rows."""

    window: int | None

    _more_counts: ClassVar[dict[str, str]] = {}
    """Counters of a learner's own, and the fields of `info` that hold them."""

    def _check_ids(self, ids: Any) -> None:
        if ids is not None and self.window is not None:
            raise ParameterError(
                "ids: a window holds the last examples, whatever they are; leave one out"
            )

    def kept_numbers(self) -> np.ndarray:
        """Return the numbers of the examples kept; there was an example."""
        entered = self._state.store.entered[: int(self._state.info[0].n)]
        return np.asarray(entered[entered != 0])

    @property
    def kappa(self) -> float:
        """The share of operations that changed nothing; 0 before any."""
        counts = self.counters
        calls = counts["steps"] + counts["null_steps"]
        return counts["null_steps"] / calls if calls else 0.0

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example: steps, kernel values, how cached rows were found."""
        fields = _FIELDS | self._more_counts
        if self._state is None:
            return dict.fromkeys((*fields, "kernel_values", *_CACHED), 0) | self._ignored()
        info, cache = self._state.info[0], self._state.cache.counts.tolist()
        counts = {name: int(info[field]) for name, field in fields.items()}
        counts["kernel_values"] = int(info.n_values) + cache[3]
        return counts | dict(zip(_CACHED, cache[:3], strict=True)) | self._ignored()
