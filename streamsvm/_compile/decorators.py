"""The decorators that compile functions, and the cache of machine code.

Numba checks a cached function against its own source file only, so that after an edit (or an
upgrade) of another file old machine code would run on. Here each cached function carries a stamp: a
digest of its file and of all files that this one imports, directly or not, numba's version and the
settings that change the code. The key of an entry also has what users registered (kernels, solvers)
for the types of its arguments. Machine code is kept in ``__pycache__`` beside the sources; where
that cannot be written, in the user's cache folder; where that fails too, in memory only.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.core.caching import FunctionCache, NullCache
from numba.core.ccallback import CFunc
from numba.core.typing.templates import AbstractTemplate, infer, infer_global
from numba.extending import intrinsic, lower_builtin, overload

from streamsvm._compile.dispatchers import EntryDispatcher, InnerDispatcher, Reference
from streamsvm._compiling import CacheFile, EntryLock, clock, compile_whole
from streamsvm._sources import digest_of_sources

Function = TypeVar("Function", bound=Callable[..., Any])

JIT = not config.DISABLE_JIT  # type: ignore[attr-defined]
"""Whether functions are compiled at all (``NUMBA_DISABLE_JIT=1`` runs them as plain Python)."""

BOUNDS_CHECKED = bool(config.BOUNDSCHECK)  # type: ignore[attr-defined]
"""Whether compiled code checks indices (``NUMBA_BOUNDSCHECK=1``)."""

compiled_functions: list[Any] = []
"""All functions that Python or C calls."""
_registered: dict[str, str] = {}


def stamp(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the stamp of a function: cached machine code with another stamp is not used."""
    sources = digest_of_sources(Path(inspect.getfile(function)))
    settings = f"bounds={BOUNDS_CHECKED} optimization={config.OPT}"  # type: ignore[attr-defined]
    return (sources, numba.__version__, settings)


def _registered_in(signature: str) -> str:
    """Return a digest of what users registered for the types in a signature; "" of nothing."""
    found = [source for name, source in sorted(_registered.items()) if name in signature]
    return hashlib.sha256("\0".join(found).encode()).hexdigest() if found else ""


class _StampedCache(FunctionCache):
    """Numba's cache on disk, with stamps; an error of the disk never reaches the caller."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        name = self._impl.filename_base
        self.lock = EntryLock(Path(self._cache_path) / f"{name}.lock")
        # Checked code has files of its own: neither replaces the other.
        name += ".bounds" if BOUNDS_CHECKED else ""
        self._cache_file = CacheFile(self._cache_path, name, stamp(function))

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        users = _registered_in(str(sig)) if _registered else ""
        return (*super()._index_key(sig, codegen), users)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = self._load(sig, target_context)
        if found is None:
            clock.miss(self._cache_path)
            self.lock.acquire()
            # Another process may have compiled it meanwhile.
            found = self._load(sig, target_context)
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            # A truncated file, or one of another build, can raise anything: it is replaced.
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        clock.compiled(self._py_func.__name__)
        try:
            super().save_overload(sig, data)
        except Exception:
            # With a full or read-only disk the next process compiles again.
            self.disable()


class _NoCache(NullCache):  # type: ignore[misc]
    """The cache where no folder can be written: each process compiles again."""

    lock = None

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = function.__name__

    def load_overload(self, sig: Any, target_context: Any) -> None:
        clock.miss(None)

    def save_overload(self, sig: Any, data: Any) -> None:
        clock.compiled(self._name)


def _cache_of(function: Callable[..., Any]) -> _StampedCache | _NoCache:
    try:
        return _StampedCache(function)
    except (RuntimeError, OSError, AttributeError):
        # No folder can be written, or this version of numba has other internals.
        return _NoCache(function)


_OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": None,
    # Nothing calls them from C: numba would compile a second entry for that.
    "no_cfunc_wrapper": True,
    # Numba lets what a function calls first inherit both: the code would depend on who calls first.
    "forceinline": False,
    "fastmath": False,
}


def _cached(function: Function, **options: Any) -> Function:
    if not JIT:
        return function
    dispatcher: Any = EntryDispatcher(function, _OPTIONS | options)
    dispatcher._cache = _cache_of(function)
    compiled_functions.append(dispatcher)
    dispatcher.compile = partial(compile_whole, dispatcher.compile, lock=dispatcher._cache.lock)
    return dispatcher  # type: ignore[no-any-return]


def compiled(function: Function) -> Function:
    """Compile a function on its first call, and keep the machine code on disk.

    Floating-point operations are done in the order in which they are written. The global
    interpreter lock is released while the function runs.
    """
    return _cached(function)


def _inner(function: Function, **options: Any) -> Function:
    if not JIT or InnerDispatcher is None:
        return _cached(function, **options)
    inner: Any = InnerDispatcher(function, _OPTIONS | options)
    return inner  # type: ignore[no-any-return]


def compiled_inner(function: Function) -> Function:
    """Compile a function that only compiled code calls, as a part of what calls it."""
    return _inner(function)


def compiled_within(function: Function) -> Function:
    """Compile a function that only compiled code calls, inline into each of its callers."""
    return _inner(function, forceinline=True)


def compiled_with_python(function: Function) -> Function:
    """Compile a function that holds the global interpreter lock, so that it may use objects."""
    return _cached(function, nogil=False)


class CFunction(CFunc):  # type: ignore[misc]
    """A compiled function that C code can call by its address: of int64s, returning an int64."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.n_arguments = len(inspect.signature(function).parameters)
        kinds = (types.int64,) * self.n_arguments
        super().__init__(function, (kinds, types.int64), {}, {"error_model": "numpy"})
        self._cache = _cache_of(function)
        compiled_functions.append(self)

    def compile(self) -> None:
        """Compile the function, or load it from the cache; this sets `address`."""
        compile_whole(super().compile, lock=self._cache.lock)


def compiled_for_c(function: Function) -> CFunction:
    """Return a function of int64s, returning an int64, as one that C code can call.

    It is compiled by its method `compile`, not by a call. It neither takes nor releases the global
    interpreter lock.
    """
    return CFunction(function)


def compiled_leaf(function: Function) -> Function:
    """Compile a small loop in which sums and maxima may be taken in another order.

    The compiler may reassociate and contract sums, so that it can vectorise them. Only for
    functions whose callers do not depend on the last bits of the result, or whose result is
    computed nowhere else.
    """
    return _cached(function, fastmath={"reassoc", "contract", "nsz", "nnan"})


@intrinsic
def _prefetch_compiled(typingctx: Any, array: Any, row: Any, column: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, args[0])
        at = [
            context.cast(builder, arg, number_kind, types.intp)
            for arg, number_kind in zip(args[1:], signature.args[1:], strict=True)
        ]
        place = cgutils.get_item_pointer(context, builder, kind, view, at)
        number, pointer = ir.IntType(32), cgutils.voidptr_t
        signature_ = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, signature_, "llvm.prefetch.p0")
        # The flags: for reading, into all levels of cache, data rather than instructions.
        builder.call(function, [builder.bitcast(place, pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, row, column), codegen


# prefetch(array, row, column): ask the processor to load an entry of a matrix into its cache. For
# entries at unpredictable places that are needed soon; it never changes a result.
prefetch: Any = _prefetch_compiled if JIT else lambda array, row, column: None


@intrinsic
def _pointer(typingctx: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), codegen


def address_of(array: Any) -> int:
    """Return the address of the memory of an array, for `array_at`; 0 if the array is empty.

    The array must be writable and C-contiguous. The caller keeps it alive while the address is
    used.
    """
    if not array.size:
        return 0
    # Takes a third of the time of `array.ctypes`.
    return ctypes.addressof(ctypes.c_char.from_buffer(array))


def array_at(address: int, shape: Any, dtype: Any) -> Any:
    """Return the C-contiguous array at an address; only compiled code can call this."""
    raise RuntimeError("addresses are for compiled code")


@overload(array_at)
def _array_at(address: Any, shape: Any, dtype: Any) -> Any:
    def at(address: Any, shape: Any, dtype: Any) -> Any:
        return numba.carray(_pointer(address), shape, dtype)  # type: ignore[attr-defined, call-arg]

    return at


def nothing(*args: Any) -> None:
    """Do nothing: a choice of `chosen_by`, for compiled code and for Python."""


def chosen_by(
    argument: int,
    choices: dict[Any, Any],
    key: Callable[[type], Any] = lambda kind: kind,
) -> Any:
    """Return a function that calls one of several compiled ones, chosen by an argument's type.

    In compiled code the choice is made when the caller is compiled, so it takes no time later.

    Parameters
    ----------
    argument
        The position of the argument that decides, from 0.
    choices
        {key: compiled function}, or `nothing`; all take the same arguments.
    key
        Returns the key for the type of the argument, which is ``np.ndarray`` or the class of a
        NamedTuple; by default the type itself.

    Returns
    -------
    The function, for compiled code and for Python.

    """

    def choose(*args: Any) -> Any:
        return choices[key(type(args[argument]))](*args)

    def chosen(kind: Any) -> Any:
        if not isinstance(kind, (types.Array, types.BaseNamedTuple, Reference)):
            return None
        return choices.get(key(getattr(kind, "instance_class", None) or np.ndarray))

    def typer(context: Any, args: Any) -> Any:
        function = chosen(args[argument])
        if function is nothing:
            return types.none(*args)
        return function and types.Dispatcher(function).get_call_type(context, args, {})

    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        choice = chosen(signature.args[argument])
        if choice is nothing:
            return context.get_dummy_value()
        function = types.Dispatcher(choice)
        implementation = context.get_function(function, signature)
        context.add_linking_libs(implementation.libs)
        return implementation(builder, args)

    lowered_as(choose, typer, lower)
    return choose


def lowered_as(function: Any, typer: Any, lower: Any) -> None:
    """Tell the compiler how to emit calls of a function that it does not compile itself.

    In contrast to an `overload`, nothing is compiled separately before it is inlined.

    Parameters
    ----------
    function
        The function that compiled code calls by this name.
    typer
        ``typer(context, args)`` returns the signature for types of arguments; None to refuse them.
    lower
        ``lower(context, builder, signature, args)`` emits a call.

    """

    class Typed(AbstractTemplate):
        """Numba's typing template of the function: it gives the signature of each call."""

        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            return None if kws else typer(self.context, args)

    infer(Typed)
    infer_global(function, types.Function(Typed))
    lower_builtin(function, types.VarArg(types.Any))(lower)


def named(function: Function, name: str) -> Function:
    """Give a closure a unique name, and return it.

    The linker tells functions apart by name, types of arguments and a number that begins anew in
    each process. Machine code from the disk could be confused with that of a closure of the same
    name.
    """
    function.__name__ = function.__qualname__ = name
    return function


def register_source(kind: type, *functions: Callable[..., Any]) -> None:
    """Have code that takes a type compiled anew when functions that users registered for it change.

    The sources of this package are in the stamps.
    """
    plain = [getattr(function, "py_func", function) for function in functions]
    own = [f for f in plain if not f.__module__.startswith("streamsvm.")]
    if own:
        _registered[f"{kind.__name__}("] = "\0".join(map(source_of, own))


def source_of(function: Callable[..., Any]) -> str:
    """Return the source of a function, or its byte code if the source is not available."""
    try:
        return inspect.getsource(function)
    except OSError:
        # It was typed at a prompt.
        return repr((function.__code__.co_code, function.__code__.co_consts))
