"""Looks whether the first events have the target, and whether it may be one of a classifier."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from streamsvm.labels.class_labels import shown
from streamsvm.run.class_looks import why_no_classes

_N_WITHOUT_TARGET = 100
_LABELS_LOOKED_AT_AFTER = 100, 300, 1000  # of all keys
_MOST_NAMES = 20

_log = logging.getLogger("streamsvm.run.keyed")


class FirstEvents:
    """Warns, once each, of a target that no event has, and of labels that look like quantities."""

    def __init__(self, target: str, is_classifier: bool) -> None:
        self._target = target
        self._lacks_target = True
        self._n_events = self._n_labels = 0
        self._names: dict[str, None] = {}  # of the fields that came, in their order
        # None: they are not looked at, or were.
        self._labels: set[Any] | None = set() if is_classifier else None

    def take(self, event: Mapping[str, Any]) -> None:
        """Count an event, before it is used."""
        if not self._lacks_target:
            return
        if self._target in event:
            self._lacks_target, self._names = False, {}
            return
        self._n_events += 1
        self._names |= dict.fromkeys(list(event)[:_MOST_NAMES])
        if self._n_events < _N_WITHOUT_TARGET:
            return
        found = [f"`{name}`" for name in self._names]
        more = ", ..." if len(found) > _MOST_NAMES else ""
        _log.warning(
            "none of the first %d events has the target `%s`, so that nothing was learnt; their "
            "fields are %s%s: is target= the name of the label?",
            self._n_events,
            self._target,
            ", ".join(found[:_MOST_NAMES]) or "none at all",
            more,
        )
        self._lacks_target, self._names = False, {}

    def take_label(self, label: Any) -> None:
        """Count a label that was learnt."""
        if self._labels is None:
            return
        self._labels.add(label)
        self._n_labels += 1
        if self._n_labels not in _LABELS_LOOKED_AT_AFTER:
            return
        looks = why_no_classes(self._labels, self._n_labels)
        if looks is not None:
            first = ", ".join(map(shown, list(self._labels)[:4]))
            _log.warning(
                "the target `%s` has %d different values in the first %d labels (%s, ...): %s; "
                "each is learnt as a class. Use IncrementalSVMRegressor for numbers, choose "
                "another target, or make classes of its values with transform=",
                self._target,
                len(self._labels),
                self._n_labels,
                first,
                looks,
            )
        if looks is not None or self._n_labels == _LABELS_LOOKED_AT_AFTER[-1]:
            self._labels = None
