"""Labels that come later than their events."""

from streamsvm.run.late_labels.buffer import LateLabels

__all__ = ["LateLabels"]
