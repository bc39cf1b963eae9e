"""Arrays of unpickled objects that are somebody else's memory."""

from __future__ import annotations

from typing import Any

import numpy as np


def writable(contents: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an object with copies of the arrays that must not be written to.

    Pickles that lend their memory (protocol 5, memory-mapped files) make such arrays. They are
    looked for in tuples and lists, too; one that is at several places remains one.
    """
    copies: dict[int, np.ndarray] = {}
    return {name: _writable(part, copies) for name, part in contents.items()}


def _writable(content: Any, copies: dict[int, np.ndarray]) -> Any:
    if isinstance(content, np.ndarray) and not content.flags.writeable:
        if id(content) not in copies:
            copies[id(content)] = content.copy()
        return copies[id(content)]
    if isinstance(content, (tuple, list)):
        parts = [_writable(part, copies) for part in content]
        if any(new is not old for new, old in zip(parts, content, strict=True)):
            return content._make(parts) if hasattr(content, "_make") else type(content)(parts)
    return content
