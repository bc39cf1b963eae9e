"""What was predicted for events whose labels come later."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any


class Given:
    """What was predicted for an event whose label comes later: a label, and the set."""

    __slots__ = ("label", "labels")

    is_asked = True
    """Whether the label is asked for, where there is somebody to ask."""

    def __init__(self, label: Any, labels: Collection[Any]) -> None:
        self.label, self.labels = label, tuple(labels)

    @property
    def further(self) -> dict[str, Any]:
        """What a question says beside the label."""
        return {"set": list(self.labels)}


def labels_of_predictions(predicted: Iterable[Any]) -> list[Any]:
    """Return the labels of predictions, of which some may be `Given`."""
    return [one.label if isinstance(one, Given) else one for one in predicted]


class GivenBoth(Given):
    """What two models predicted: the label of the one in use, and both."""

    __slots__ = ()

    @property
    def further(self) -> dict[str, Any]:
        """Nothing more: who is asked need not know of a candidate."""
        return {}
