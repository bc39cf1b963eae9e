"""How a kernel is made known: a NamedTuple of float parameters and one function.

A kernel declares what it is a function *of*:

``"dot"``
    of the dot product of two rows: ``value(kernel, dot) -> float``;
``"distance"``
    of their squared Euclidean distance: ``value(kernel, distance) -> float``;
``"vectors"``
    of the rows themselves: ``value(kernel, x, z) -> float``, the general and slower case.

Under the compiler the function is chosen by the type of the NamedTuple when a block of kernel
values is compiled for it; solvers call that block by its address (see `support.bound_kernels`), and
are compiled once for all kernels. Without the compiler it is chosen by the same table.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from numba.extending import overload

from streamsvm import _compile
from streamsvm.errors import ParameterError

USES = "kernels/*.py"
"""Files whose functions are called from here: an edit of one recompiles what calls them."""

Product = Literal["dot", "distance", "vectors"]
Value = TypeVar("Value", bound=Callable[..., float])

_values: dict[type, Callable[..., float]] = {}
_products: dict[type, Product] = {}


def register(kernel_type: type, of: Product = "vectors") -> Callable[[Value], Value]:
    """Register the decorated function as the values of the kernels of one type.

    Parameters
    ----------
    kernel_type
        A ``typing.NamedTuple`` class with at least one field, all of them floats.
    of
        What the function is given besides the kernel: ``"dot"``, ``"distance"`` (squared) or,
        the default because it always applies, the two ``"vectors"``. The first two are several
        times faster.

    Returns
    -------
    The decorator. The function must be plain Python that numba compiles; it is returned as is.

    Examples
    --------
    >>> import math
    >>> from typing import NamedTuple
    >>> from streamsvm import kernels
    >>> class RationalQuadratic(NamedTuple):
    ...     scale: float
    >>> @kernels.register(RationalQuadratic, of="distance")
    ... def rational_quadratic(kernel, distance):
    ...     return 1.0 / (1.0 + distance / kernel.scale)
    >>> kernels.evaluate(RationalQuadratic(scale=2.0), [0.0, 0.0], [1.0, 1.0])
    0.5

    """
    if not (issubclass(kernel_type, tuple) and getattr(kernel_type, "_fields", None)):
        raise ParameterError(
            f"{kernel_type!r} is not a kernel type: use a typing.NamedTuple with at least one float"
        )
    if of not in ("dot", "distance", "vectors"):
        raise ParameterError(f"of={of!r}: use 'dot', 'distance' or 'vectors'")

    def decorate(function: Value) -> Value:
        wanted = 3 if of == "vectors" else 2
        given = len(inspect.signature(function).parameters)
        if given != wanted:
            raise ParameterError(
                f"{function.__name__} takes {given} arguments; a kernel of {of!r} takes {wanted}: "
                + ("(kernel, x, z)" if wanted == 3 else f"(kernel, {of})")
            )
        _compile.add_source_of(function)
        _values[kernel_type] = _compile.compiled(function) if _compile.JIT else function
        _products[kernel_type] = of
        return function

    return decorate


def product_of(kernel_type: type) -> Product:
    """Return what kernels of this type are a function of."""
    return _products[kernel_type]


def registered() -> dict[str, type]:
    """Return the registered kernel types by name."""
    return {kernel_type.__name__: kernel_type for kernel_type in _values}


def check_kernel(kernel: Any) -> None:
    """Refuse what is not a registered kernel with finite float parameters."""
    if type(kernel) not in _values:
        names = ", ".join(sorted(t.__name__ for t in _values))
        raise ParameterError(
            f"kernel={kernel!r} is not a registered kernel: use one of {names}, or register your "
            "own NamedTuple with streamsvm.kernels.register"
        )
    for name, value in zip(kernel._fields, kernel, strict=True):
        if not isinstance(value, float) or not math.isfinite(value):
            raise ParameterError(
                f"{name}={value!r} of {type(kernel).__name__}: use a finite float (1.0, not 1)"
            )


def value_of_product(kernel: Any, product: Any) -> Any:
    """Return the kernel value for a dot product or a squared distance."""
    return _values[type(kernel)](kernel, product)


def value_of_vectors(kernel: Any, x: Any, z: Any) -> Any:
    """Return the kernel value of two rows, for a kernel of ``"vectors"``."""
    return _values[type(kernel)](kernel, x, z)


@overload(value_of_product, inline="never")
def _value_of_product(kernel: Any, product: Any) -> Any:
    function = _values[kernel.instance_class]

    def chosen(kernel: Any, product: Any) -> Any:
        return function(kernel, product)

    return _compile.named(chosen, _name_of(kernel.instance_class))


@overload(value_of_vectors, inline="never")
def _value_of_vectors(kernel: Any, x: Any, z: Any) -> Any:
    function = _values[kernel.instance_class]

    def chosen(kernel: Any, x: Any, z: Any) -> Any:
        return function(kernel, x, z)

    return _compile.named(chosen, _name_of(kernel.instance_class))


def _name_of(kernel_type: type) -> str:
    return f"value of {kernel_type.__module__}.{kernel_type.__qualname__}"


def evaluate(kernel: Any, x: Any, z: Any) -> float:
    """Return one kernel value, in plain Python: for checks, not for speed.

    Examples
    --------
    >>> from streamsvm import kernels
    >>> kernels.evaluate(kernels.Polynomial(degree=2), [1.0, 2.0], [3.0, 4.0])
    144.0

    """
    check_kernel(kernel)
    if product_of(type(kernel)) == "vectors":
        import numpy as np

        return float(value_of_vectors(kernel, np.asarray(x, float), np.asarray(z, float)))
    if product_of(type(kernel)) == "dot":
        return float(value_of_product(kernel, sum(a * b for a, b in zip(x, z, strict=True))))
    return float(value_of_product(kernel, sum((a - b) ** 2 for a, b in zip(x, z, strict=True))))
