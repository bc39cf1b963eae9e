"""The registry of kernels: a kernel is a NamedTuple of float parameters and one function.

The function is registered with the quantity that it is a function *of*:

``"dot"``
    of the dot product of two rows: ``value(kernel, dot) -> float``;
``"distance"``
    of their squared Euclidean distance: ``value(kernel, distance) -> float``;
``"vectors"``
    of the rows themselves: ``value(kernel, x, z) -> float``, the general and slower case.

When numba compiles the function that computes a block of kernel values, it chooses the kernel's
function by the type of the NamedTuple. Solvers call this block function by its address (see
`kernel_rows.bound_kernels`), so that they are compiled once for all kernels. With numba switched
off, the function is chosen from the same table.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from numba.core.errors import NumbaError
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
    """Register the decorated function as the one that computes the values of a kernel type.

    Parameters
    ----------
    kernel_type
        A ``typing.NamedTuple`` class with at least one field, all of them floats.
    of
        The argument of the function besides the kernel: ``"dot"``, ``"distance"`` (squared), or the
        two ``"vectors"``, which is the default because it suits every kernel. The first two are
        several times faster.

    Returns
    -------
    The decorator. The function must be plain Python that numba can compile; it is returned
    unchanged.

    Raises
    ------
    ParameterError
        `kernel_type` is not a NamedTuple, `of` is none of the three, or the function takes another
        number of arguments.

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
        _compile.register_source(kernel_type, function)
        _values[kernel_type] = _compile.compiled(function) if _compile.JIT else function
        _products[kernel_type] = of
        return function

    return decorate


def product_of(kernel_type: type) -> Product:
    """Return the quantity that kernels of a type are a function of.

    Parameters
    ----------
    kernel_type
        A registered kernel type.

    Returns
    -------
    "dot", "distance" or "vectors".

    """
    return _products[kernel_type]


def registered() -> dict[str, type]:
    """Return the registered kernel types.

    Returns
    -------
    {name of the type: type}.

    """
    return {kernel_type.__name__: kernel_type for kernel_type in _values}


def check_kernel(kernel: Any) -> None:
    """Check that an object is a kernel of a registered type with finite float parameters.

    Parameters
    ----------
    kernel
        Any object.

    Raises
    ------
    ParameterError
        It is not such a kernel.

    """
    if isinstance(kernel, type) and kernel in _values:
        raise ParameterError(
            f"kernel={kernel.__name__} is a type of kernels: give one with its parameters, as "
            f"{kernel.__name__}(...)"
        )
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
    # A kernel's own checks are in __new__, which `_replace` does not call.
    type(kernel)(*kernel)


def value_of_product(kernel: Any, product: Any) -> Any:
    """Return the kernel value for a dot product or a squared distance.

    Parameters
    ----------
    kernel
        A kernel of "dot" or "distance".
    product
        The dot product or the squared distance of two rows, float.

    Returns
    -------
    The kernel value, float.

    """
    return _values[type(kernel)](kernel, product)


@contextmanager
def explained_errors(kernel_type: type) -> Iterator[None]:
    """Turn numba's error about the function of a kernel type into one that says what to do.

    Parameters
    ----------
    kernel_type
        The type whose function is compiled in this context.

    Yields
    ------
    None

    Raises
    ------
    ParameterError
        The function cannot be compiled.

    """
    try:
        yield
    except NumbaError as error:
        function: Any = _values[kernel_type]
        code = getattr(function, "py_func", function).__code__
        raise ParameterError(
            f"numba cannot compile {code.co_name} ({code.co_filename}, line "
            f"{code.co_firstlineno}), the function of {kernel_type.__name__}: use numbers, "
            "arithmetic, loops, math and NumPy only. The error of numba that this one follows "
            "names the line"
        ) from error


def value_of_vectors(kernel: Any, x: Any, z: Any) -> Any:
    """Return the kernel value of two rows, float64 (d,), for a kernel of ``"vectors"``."""
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
    """Return one kernel value, computed in plain Python: for checks, not for speed.

    Parameters
    ----------
    kernel
        A registered kernel.
    x, z
        Two sequences of d floats.

    Returns
    -------
    k(x, z).

    Raises
    ------
    ParameterError
        `kernel` is not a registered kernel.

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
