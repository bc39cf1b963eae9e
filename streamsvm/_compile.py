"""How everything compiled is compiled: the only file that names the compiler's decorator.

Numba stamps a cached function with the content of its own file alone, so that an edit (or an
upgrade) of another file leaves old machine code running. Here every function is stamped with a
digest of its file and of all files that this one imports, directly or not, of the functions users
registered, of numba's version and of the settings that change the code. Compiled code is kept in
``__pycache__`` beside the sources; where that cannot be written, in the user's cache folder; where
that fails too, in memory only.
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

from streamsvm._compiling import EntryLock, clock, compile_whole
from streamsvm._compiling import watchers as watchers
from streamsvm._sources import digest_of_sources

Function = TypeVar("Function", bound=Callable[..., Any])

JIT = not config.DISABLE_JIT  # type: ignore[attr-defined]
BOUNDS_CHECKED = bool(config.BOUNDSCHECK)  # type: ignore[attr-defined]
"""Whether functions are compiled at all (``NUMBA_DISABLE_JIT=1`` runs them as plain Python)."""

_compiled: list[Any] = []
_registered: list[str] = []


def stamp(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return what a cached function must have been compiled from to be used."""
    users = hashlib.sha256("\0".join(sorted(_registered)).encode()).hexdigest()
    sources = digest_of_sources(Path(inspect.getfile(function)))
    return (sources, users, numba.__version__, f"bounds={BOUNDS_CHECKED}")


def _variant(users: str) -> str:
    """Name the cache files of an unusual configuration, so that it displaces nobody else's."""
    digest = hashlib.sha256(users.encode()).hexdigest()[:8] if _registered else ""
    return digest + ("-bounds" if BOUNDS_CHECKED else "")


class _StampedCache(FunctionCache):
    """Numba's on-disk cache, stamped with `stamp()` and never a reason to fail."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._plain_name = self._impl.filename_base
        self.lock = EntryLock(Path(self._cache_path) / f"{self._plain_name}.lock")
        self.restamp()

    def restamp(self) -> None:
        own = stamp(self._py_func)
        variant = _variant(own[1])
        name = f"{self._plain_name}.{variant}" if variant else self._plain_name
        self._cache_file = type(self._cache_file)(self._cache_path, name, own)

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
            # A file cut short by a crash, or of another build, can raise anything: write over it.
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        clock.compiled(self._py_func.__name__)
        try:
            super().save_overload(sig, data)
        except Exception:
            # A full or read-only disk costs a compilation in the next process, nothing else.
            self.disable()


class _NoCache(NullCache):  # type: ignore[misc]
    """In the place of the cache where no folder can be written: each process compiles anew."""

    lock = None

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = function.__name__

    def restamp(self) -> None:
        """Do nothing: what is compiled anew is never stale."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        clock.miss(None)

    def save_overload(self, sig: Any, data: Any) -> None:
        clock.compiled(self._name)


def _cache_of(function: Callable[..., Any]) -> _StampedCache | _NoCache:
    try:
        return _StampedCache(function)
    except (RuntimeError, OSError, AttributeError):
        # No folder can be written, or numba's internals moved.
        return _NoCache(function)


def _cached(function: Function, **options: Any) -> Function:
    dispatcher = numba.njit(error_model="numpy", **{"nogil": True, **options})(function)
    if JIT:
        dispatcher._cache = _cache_of(function)
        _compiled.append(dispatcher)
        dispatcher.compile = partial(compile_whole, dispatcher.compile, lock=dispatcher._cache.lock)
    return dispatcher


def compiled(function: Function) -> Function:
    """Compile `function` on its first call, and keep the machine code on disk.

    Floating-point results are those of the written order of operations; the interpreter's lock
    is released while the function runs.
    """
    return _cached(function)


def compiled_within(function: Function) -> Function:
    """Compile a function as a part of whoever calls it.

    A call hands over each array of a state as seven words, by memory: with thirty arrays that takes
    some 35 ns. For small functions of a state that are called in inner loops.
    """
    return _cached(function, forceinline=True)


def compiled_with_python(function: Function) -> Function:
    """Compile a function that keeps the interpreter's lock, to look at Python's own objects."""
    return _cached(function, nogil=False)


class CFunction(CFunc):  # type: ignore[misc]
    """Machine code at an address, as C calls it: whole numbers go in, and one comes out."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.n_arguments = len(inspect.signature(function).parameters)
        kinds = (types.int64,) * self.n_arguments
        super().__init__(function, (kinds, types.int64), {}, {"error_model": "numpy"})
        self._cache = _cache_of(function)
        _compiled.append(self)

    def compile(self) -> None:
        """Compile it, or load it from the cache: then `address` is known."""
        compile_whole(super().compile, lock=self._cache.lock)


def compiled_for_c(function: Function) -> CFunction:
    """Return a function of int64s to an int64 that is to be compiled for callers that speak C.

    Its method `compile` compiles it, or finds it on disk; then its `address` is known. It keeps the
    interpreter's lock if its caller has it.
    """
    return CFunction(function)


def compiled_leaf(function: Function) -> Function:
    """Compile a small loop in which the order of a sum or of a maximum may change.

    Sums are reassociated and contracted so that they vectorise. Only for functions whose callers
    do not depend on the last bits, or that are the only place where their value is computed.
    """
    return _cached(function, fastmath={"reassoc", "contract", "nsz", "nnan"})


def _without_owners(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = array.meminfo.type(None)
        array.parent = array.parent.type(None)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts = cgutils.unpack_tuple(builder, value, len(kind))
        pairs: Any = zip(kind, parts, strict=True)  # type: ignore[call-overload]
        return context.make_tuple(
            builder, kind, [_without_owners(context, builder, *pair) for pair in pairs]
        )
    return value


@intrinsic
def _borrowed_compiled(typingctx: Any, state: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _without_owners(context, builder, signature.args[0], args[0])

    return state(state), codegen


# borrowed(state): the same arrays, without a claim on their memory. Each function that a state of
# thirty arrays is handed to counts thirty references up and down, atomically: in a function called
# once an event that is most of its time, and rows of twenty features that a step hands on are half
# of the step's. Only for what the caller keeps alive, and never to return.
borrowed: Any = _borrowed_compiled if JIT else lambda state: state


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
        # To read, into all levels, data.
        builder.call(function, [builder.bitcast(place, pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, row, column), codegen


# prefetch(array, row, column): have an entry of a matrix brought near, and go on meanwhile. For
# entries in no order that are needed soon; it is a hint, and changes nothing.
prefetch: Any = _prefetch_compiled if JIT else lambda array, row, column: None


@intrinsic
def _pointer(typingctx: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), codegen


def address_of(array: Any) -> int:
    """Return where the memory of an array is, for `array_at`; 0 if it is empty.

    The array can be written to and is C-contiguous; who asks keeps it alive.
    """
    if not array.size:
        return 0
    # A third of the time that `array.ctypes` takes.
    return ctypes.addressof(ctypes.c_char.from_buffer(array))


def array_at(address: int, shape: Any, dtype: Any) -> Any:
    """Return the C-contiguous array at an address: for compiled code."""
    raise RuntimeError("addresses are for compiled code")


@overload(array_at)
def _array_at(address: Any, shape: Any, dtype: Any) -> Any:
    def at(address: Any, shape: Any, dtype: Any) -> Any:
        return numba.carray(_pointer(address), shape, dtype)  # type: ignore[attr-defined, call-arg]

    return at


def chosen_by(
    argument: int,
    choices: dict[Any, Any],
    key: Callable[[type], Any] = lambda kind: kind,
) -> Any:
    """Return a function that calls one of several compiled ones, by the type of an argument.

    Under the compiler the choice is made when the caller is compiled, and costs nothing.

    Parameters
    ----------
    argument
        Which argument decides, from 0.
    choices
        Compiled functions of the same arguments, by `key`.
    key
        Gives the key in `choices` for a type: ``np.ndarray``, or the class of a NamedTuple. The
        type itself by default.

    """

    def choose(*args: Any) -> Any:
        return choices[key(type(args[argument]))](*args)

    def chosen(kind: Any) -> Any:
        if not isinstance(kind, (types.Array, types.BaseNamedTuple)):
            return None
        return choices.get(key(getattr(kind, "instance_class", None) or np.ndarray))

    def typer(context: Any, args: Any) -> Any:
        function = chosen(args[argument])
        return function and types.Dispatcher(function).get_call_type(context, args, {})

    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = types.Dispatcher(chosen(signature.args[argument]))
        implementation = context.get_function(function, signature)
        context.add_linking_libs(implementation.libs)
        return implementation(builder, args)

    lowered_as(choose, typer, lower)
    return choose


def lowered_as(function: Any, typer: Any, lower: Any) -> None:
    """Tell the compiler the type and the code of calls of a function that it does not compile.

    `typer` gives a signature for the types of the arguments, or None for those it refuses; `lower`
    emits the call. In contrast to an `overload` this is no function that is compiled by itself,
    with all that it calls, before it becomes a part of its caller.
    """

    class Typed(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            return None if kws else typer(self.context, args)

    infer(Typed)
    infer_global(function, types.Function(Typed))
    lower_builtin(function, types.VarArg(types.Any))(lower)


def named(function: Function, name: str) -> Function:
    """Give a function that is made in another function a name of its own, and return it.

    The linker tells functions apart by name, types of arguments and a number that is counted up in
    each process: machine code from the disk could be taken for that of a namesake.
    """
    function.__name__ = function.__qualname__ = name
    return function


def add_source_of(function: Callable[..., Any]) -> None:
    """Make a function that is called by a table of types part of every stamp, if it is a user's."""
    function = getattr(function, "py_func", function)
    if not function.__module__.startswith("streamsvm."):
        add_source(source_of(function))


def source_of(function: Callable[..., Any]) -> str:
    """Return the source of a function."""
    try:
        return inspect.getsource(function)
    except OSError:
        # Typed at a prompt: its byte code is all there is to tell it from another.
        return repr((function.__code__.co_code, function.__code__.co_consts))


def add_source(text: str) -> None:
    """Make the source of a user's registered function part of every stamp."""
    _registered.append(text)
    for dispatcher in _compiled:
        dispatcher._cache.restamp()
