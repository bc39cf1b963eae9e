"""Converts parameters, names, labels and kernels to JSON values and back, with checks."""

from __future__ import annotations

import inspect
import random
from dataclasses import asdict
from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm.errors import ModelFileError
from streamsvm.selection.strategies import NAMES
from streamsvm.support.label_values import MOST_BITS

Json = dict[str, Any]
"""An object of JSON: strings, numbers, booleans, None, lists and objects by name."""

Content = tuple[Json, dict[str, np.ndarray]]
"""JSON values by name, and arrays by name."""

LARGEST_COUNT = 2**53
"""The largest count that a file may hold: at a million a second, that of 285 years."""

_CLASS_WEIGHT, _KERNEL, _SELECTION = "class_weight", "kernel", "selection"


def as_json(value: Any, what: str) -> Any:
    """Return a parameter, label or name as a JSON value; NumPy scalars become Python's.

    Raises ModelFileError if it is no string, number, boolean or None, or a whole number of more
    than 256 bits; `what` is its name in the message.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        # Without the number, which may have too many digits to be written.
        raise ModelFileError(
            f"{what} cannot be saved: it is a number of {value.bit_length()} bits, and files hold "
            f"whole numbers of up to {MOST_BITS} bits (a label or name may be a string)"
        )
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ModelFileError(
        f"{what} {value} of type {type(value).__name__} cannot be saved: use strings, numbers or "
        "booleans"
    )


def parameters_as_json(part: Any) -> dict[str, Any]:
    """Return the parameters of an object as JSON values.

    Kernel, class weights and selection have their own names, all others are in ``parameters``.
    """
    content: dict[str, Any] = {"parameters": {}}
    for name in inspect.signature(type(part)).parameters:
        value = getattr(part, name)
        if name == _KERNEL:
            content[name] = kernel_as_json(value)
        elif name == _CLASS_WEIGHT:
            content[name] = _weights_as_json(value)
        elif name == _SELECTION:
            content |= {} if value is None else {name: {"rule": value.name, **asdict(value)}}
        else:
            content["parameters"][name] = as_json(value, name)
    return content


def parameters_from_json(cls: type, content: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a class by name from what `parameters_as_json` returned.

    Raises ModelFileError if the kernel is not registered in this process, ValueError if a parameter
    is unknown, or of a type that none has.
    """
    known = inspect.signature(cls).parameters
    found: dict[str, Any] = {}
    for name, value in checked(content.get("parameters"), dict, "parameters").items():
        if name not in known or name in (_KERNEL, _CLASS_WEIGHT, _SELECTION, *found):
            raise ValueError(f"{cls.__name__} has no parameter {name!r:.40}")
        found[name] = checked_scalar(value, name)
    if _KERNEL in known:
        found[_KERNEL] = kernel_from_json(content.get(_KERNEL))
    if _CLASS_WEIGHT in known:
        found[_CLASS_WEIGHT] = _weights_from_json(content.get(_CLASS_WEIGHT))
    if _SELECTION in known:
        found[_SELECTION] = _selection_from_json(content.get(_SELECTION))
    return found


def _selection_from_json(value: Any) -> Any:
    """Return the selection, or None, that `parameters_as_json` described."""
    if value is None:
        return None
    settings = dict(checked(value, dict, "the selection"))
    rule = checked(settings.pop("rule", None), str, "the rule of the selection")
    if rule not in NAMES:
        raise ValueError(f"there is no selection {rule!r:.40}")
    return NAMES[rule](**settings)


def _weights_as_json(weight: Any) -> Any:
    if not isinstance(weight, dict):
        return as_json(weight, _CLASS_WEIGHT)
    return [[as_json(label, "the label"), float(factor)] for label, factor in weight.items()]


def _weights_from_json(value: Any) -> Any:
    if not isinstance(value, list):
        return checked_scalar(value, _CLASS_WEIGHT)
    pairs = [checked(pair, list, "a pair of class_weight") for pair in value]
    return {checked_scalar(label, "a label"): factor for label, factor in pairs}


def kernel_as_json(kernel: Any) -> dict[str, Any] | None:
    """Return the name of a kernel's type, and the values of its parameters; None for None."""
    return None if kernel is None else {"type": type(kernel).__name__, "values": list(kernel)}


def kernel_from_json(value: Any) -> Any:
    """Return the kernel, or None, that `kernel_as_json` described.

    Raises ModelFileError if its type is not registered in this process, ValueError if the value
    describes none.
    """
    if value is None:
        return None
    name = checked(checked(value, dict, "the kernel").get("type"), str, "the kernel's type")
    known = kernels.registered()
    if name not in known:
        raise ModelFileError(
            f"the model uses the kernel {name!r:.60}, which is not registered here: import "
            "the module that registers it before loading; the command finds it as an entry point "
            "of the group streamsvm.plugins"
        )
    kernel = known[name](*checked(value.get("values"), list, "the kernel's values"))
    kernels.check_kernel(kernel)
    return kernel


def checked(value: Any, kind: type, what: str) -> Any:
    """Return a JSON value of a type; raise ValueError, which says `what` it is, for another one."""
    if not isinstance(value, kind):
        raise ValueError(f"{what} is {type(value).__name__}, wanted {kind.__name__}")
    return value


def checked_scalar(value: Any, what: str) -> Any:
    """Return a JSON value if it is a string, a number, a boolean or None.

    Raises ValueError if not, or if it is a whole number of more than 256 bits.
    """
    if isinstance(value, (list, dict)):
        raise ValueError(f"{what} is {type(value).__name__}, wanted one value")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise ValueError(f"{what} is a number of more than {MOST_BITS} bits")
    return value


def checked_number(value: Any, what: str, most: float = 1e300, least: float = -1e300) -> float:
    """Return a JSON value as a float; raise ValueError if it is no number within limits."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (is_number and least <= value <= most):
        raise ValueError(f"{what} is {value!r:.40}, wanted a number")
    return float(value)


def distinct(values: Any, what: str) -> list[Any]:
    """Return a JSON list of labels or names; raise ValueError if two are equal, or one is NaN."""
    found = [checked_scalar(value, what) for value in checked(values, list, what)]
    if len(set(found)) != len(found) or any(value != value for value in found):
        raise ValueError(f"{what}: two are equal, or one is NaN")
    return found


def draws_as_json(draws: random.Random) -> list[Any]:
    """Return the state of a generator of random numbers."""
    version, state, gauss = draws.getstate()
    return [version, list(state), gauss]


def set_draws(draws: random.Random, content: Any) -> None:
    """Set the state that `draws_as_json` returned; raise ValueError if it is none."""
    version, state, gauss = checked(content, list, "draws")
    gauss = None if gauss is None else checked_number(gauss, "draws")
    draws.setstate((version, tuple(checked(state, list, "draws")), gauss))
