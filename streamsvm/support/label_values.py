"""What can be a label, or a concept: values that model files hold, and that are not too large."""

from __future__ import annotations

from typing import Any

import numpy as np

LONGEST_LABEL = 1000
"""Characters of a label: longer ones are texts, which memory and files would have to hold."""

MOST_BITS = 256
"""The size of the largest whole number, as a label or a name may be a digest.

JSON holds whole numbers as decimal text, of any length.
"""


def is_too_large(label: Any) -> bool:
    """Tell whether a label is a text of over 1,000 characters, or a number of over 256 bits."""
    if isinstance(label, str):
        return len(label) > LONGEST_LABEL
    return isinstance(label, int) and label.bit_length() > MOST_BITS


def too_large(label: Any, what: str = "label") -> str:
    """Return why a label that is too large is refused."""
    if isinstance(label, str):
        found = f"{what} {label[:40]!r}... has {len(label):,} characters"
    else:
        # Without the number, which may have too many digits to be written.
        found = f"a {what} is a whole number of {label.bit_length():,} bits"
    return (
        f"{found}: a {what} is a short text (at most {LONGEST_LABEL:,}), a number (whole ones of "
        f"at most {MOST_BITS} bits) or a boolean"
    )


def fault_of(value: Any, what: str) -> str | None:
    """Return why a value cannot be a label, or the like, of a model file; None: it can."""
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, (str, int, float)):
        return f"a {what} is {type(value).__name__}: use a text, a number or a boolean"
    return too_large(value, what) if is_too_large(value) else None
