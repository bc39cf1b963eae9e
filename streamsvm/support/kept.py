"""Objects whose state, in checkpoints, is that of some of their attributes."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np


class Kept:
    """Base of such objects."""

    kept: ClassVar[tuple[str, ...]]
    """The names of the attributes, which are JSON values."""

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the attributes by name, for `restore`; there are no arrays."""
        return {name: getattr(self, name) for name in self.kept}, {}

    def restore(self, values: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from what `state` returned."""
        for name in self.kept:
            setattr(self, name, values[name])
