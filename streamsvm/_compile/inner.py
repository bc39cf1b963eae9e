"""Functions that only compiled code calls: no call from Python, no machine code of their own.

Numba gives each function that it compiles an entry for calls from Python, optimises it and turns it
into machine code, and then does the same with each function that calls it, callees included. For a
function that is only ever part of others, all of this but the last is wasted. An `InnerDispatcher`
stops when a function is LLVM code, not optimised; the functions that Python calls link it, and all
that it calls in turn.

This file depends on numba's internals: libraries of LLVM code, and how dispatchers compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import compiler, sigutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler
from numba.core.errors import TypingError
from numba.core.registry import CPUDispatcher

from streamsvm._compile.references import Reference, borrowed


class _InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The LLVM code of one function, as its callers link it."""

    _whole: Any = None

    def add_llvm_module(self, ll_module: Any) -> None:
        """Add LLVM code as it is: it is optimised with what calls it."""
        self._final_module.link_in(ll_module)

    def finalize(self) -> None:
        """End the adding of code."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True

    def module_alone(self) -> Any:
        """Return the LLVM code without that of the functions that it calls."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """Return the LLVM code with all that it calls, for callers that are not of this package."""
        if self._whole is None:
            self._whole = self.module_alone().clone()
            for module in modules_of(self._linking_libraries):
                self._whole.link_in(module, preserve=True)
        return self._whole


def modules_of(libraries: list[Any]) -> list[Any]:
    """Return the LLVM modules of libraries and of all that inner ones call, callers first.

    The linker leaves out what nothing refers to so far: callees must come after all callers.
    """
    order: dict[Any, Any] = {}

    def visit(library: Any) -> None:
        if library in order:
            return
        if isinstance(library, _InnerLibrary):
            for called in library._linking_libraries:
                visit(called)
            order[library] = library.module_alone()
        else:
            order[library] = library._get_module_for_linking()

    for library in libraries:
        visit(library)
    return list(order.values())[::-1]


class _EntryLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The machine code of a function that Python calls; each inner function is linked once."""

    def finalize(self) -> None:
        """Link all that the function calls, optimise it and make machine code."""
        for module in modules_of(self._linking_libraries):
            self._final_module.link_in(module, preserve=True)
        if hasattr(self, "_reload_init"):  # from numba 0.63 on
            for library in self._linking_libraries:
                self._reload_init.update(library._reload_init)
        self._linking_libraries = []
        super().finalize()

    def _verify_declare_only_symbols(self) -> None:
        """Refuse a module in which a compiled function is called that is not there."""
        for function in self._final_module.functions:
            if function.is_declaration and function.name.startswith("_ZN"):
                raise AssertionError(f"{function.name} is not linked")


def _pipeline_with(kind: type, caches: bool) -> type:
    """Return numba's pipeline with another kind of library."""

    class _Pipeline(compiler.Compiler):  # type: ignore[misc]
        def compile_extra(self, func: Callable[..., Any]) -> Any:
            self.state.library = kind(self.state.targetctx.codegen(), func.__qualname__)
            if caches:
                self.state.library.enable_object_caching()
            return super().compile_extra(func)

    return _Pipeline


_EntryPipeline = _pipeline_with(_EntryLibrary, caches=True)
_InnerPipeline = _pipeline_with(_InnerLibrary, caches=False)


class _InnerCompiler(_FunctionCompiler):  # type: ignore[misc]
    def _customize_flags(self, flags: Any) -> Any:
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return flags


class EntryDispatcher(CPUDispatcher):  # type: ignore[misc]
    """A compiled function; for references to states as arguments only compiled code can call it."""

    only_inner = False

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, {}, options, _EntryPipeline)
        self._inner = _InnerCompiler(function, self.targetdescr, options, {}, _InnerPipeline)

    def compile(self, sig: Any) -> Any:
        """Compile the function for types of arguments, if need be."""
        args, return_type = sigutils.normalize_signature(sig)
        if not self.only_inner and not any(isinstance(kind, Reference) for kind in args):
            entry = super().compile(sig)
            self._refuse_dangling(self.overloads[tuple(args)])
            return entry
        with global_compiler_lock, self._compiling_counter:
            found = self.overloads.get(tuple(args))
            if found is None:
                # The key by which numba finds the code when it emits a call.
                found = self._inner.compile(args, return_type)._replace(entry_point=object())
                self._refuse_dangling(found)
                self.targetctx.insert_user_function(
                    found.entry_point, found.fndesc, [found.library]
                )
                self.overloads[tuple(args)] = found
        return found.entry_point

    def _refuse_dangling(self, made: Any) -> None:
        """Refuse a function that makes references, and returns one, or an array.

        A reference ends with the call; an array that was read through it keeps no memory alive.
        """
        function, returned = self.py_func, str(made.signature.return_type)
        makes = any(function.__globals__.get(n) is borrowed for n in function.__code__.co_names)
        if makes and ("Reference(" in returned or "array(" in returned.lower()):
            raise TypingError(
                f"{function.__qualname__} makes references, and returns {returned}: a reference "
                "ends with the call that made it, and arrays are not kept alive by it"
            )


class InnerDispatcher(EntryDispatcher):
    """A function that only compiled code calls; see the file's first lines."""

    only_inner = True

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Refuse a call from Python."""
        raise TypeError(
            f"only compiled code can call {self.py_func.__qualname__}; from Python, call a "
            "compiled function that calls it"
        )
