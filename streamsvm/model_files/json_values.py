"""Names, labels and kernels as JSON values."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm.errors import ModelFileError


def as_json(value: Any, what: str) -> Any:
    """Return a label or name if a file can hold it.

    Raises
    ------
    ModelFileError
        It is not a string, a number, a boolean or None.

    """
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ModelFileError(f"{what} {value!r} cannot be saved: use strings, numbers or booleans")


def kernel_as_json(kernel: Any) -> dict[str, Any] | None:
    """Return a kernel's type name and parameters."""
    return None if kernel is None else {"type": type(kernel).__name__, "values": list(kernel)}


def kernel_from_json(value: dict[str, Any] | None) -> Any:
    """Return the kernel; its type must be registered.

    Raises
    ------
    ModelFileError
        No kernel type of that name is registered in this process.

    """
    if value is None:
        return None
    known = kernels.registered()
    if value["type"] not in known:
        raise ModelFileError(
            f"the model uses the kernel {value['type']!r}, which is not registered here: import "
            "the module that registers it before loading"
        )
    return known[value["type"]](*value["values"])
