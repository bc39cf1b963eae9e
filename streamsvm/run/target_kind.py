"""Whether labels look like classes, or like quantities or names."""

from collections.abc import Collection
from typing import Any

# Up to so many classes nothing is suspected; more than so many are refused unless asked for.
FEW_CLASSES, _MOST_CLASSES = 50, 1000


def why_no_classes(classes: Collection[Any], n: int) -> str | None:
    """Return what the labels of n events look like, if not like classes; None: they may be some."""
    k = len(classes)
    if k <= FEW_CLASSES:
        return None
    has_fractions = k > 0.02 * n and any(
        isinstance(y, float) and not y.is_integer() for y in classes
    )
    are_few_each = (n >= 100 and k > 0.9 * n) or (n >= 1000 and k > 0.5 * n)
    return looks_of(classes) if k > _MOST_CLASSES or has_fractions or are_few_each else None


def looks_of(labels: Collection[Any]) -> str:
    """Return what labels look like that are no classes."""
    are_numbers = all(isinstance(y, (int, float)) for y in labels)
    return "this looks like regression" if are_numbers else "these look like names, not classes"
