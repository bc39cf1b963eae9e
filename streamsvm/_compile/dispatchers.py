"""Which dispatchers compile functions, and what `borrowed` is.

Those of `inner` and `references` depend on numba's internals. They are tried once, when this is
imported, with a version of numba that they were not tested with. Where they fail, numba's own
dispatchers take their place, and states are passed by value: results are the same, but compiling
takes about twice as long.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import typeof
from numba.core import config
from numba.core.registry import CPUDispatcher
from numba.extending import register_jitable

from streamsvm._compile.layout import value_at, words_of

_log = logging.getLogger(__name__)

_TESTED = ("0.61.2", "0.68.1")
"""The versions of numba that the tests were run with."""


class _Plain(CPUDispatcher):  # type: ignore[misc]
    """Numba's own dispatcher."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        super().__init__(function, {}, options)


class _Tried(NamedTuple):
    values: Any
    n: Any


def _do_inner_functions_work() -> bool:
    """Tell whether a state is passed by reference to a function that only compiled code calls."""
    lent, at, options = borrowed, reference_at, {"nopython": True}

    def second(state: Any) -> Any:
        return state.values[1] + state.n

    inner = InnerDispatcher(second, options)

    def entry(state: Any) -> Any:
        return inner(lent(state))

    def at_address(address: int, kind: Any) -> Any:
        return inner(at(address, kind))

    state = _Tried(np.array([1.0, 2.0]), 3)
    references, words = sys.getrefcount(state.values), np.array(words_of(state))
    found = EntryDispatcher(entry, options)(state)
    of_words = EntryDispatcher(at_address, options)(words.ctypes.data, typeof(state))
    return bool(found == of_words == 5.0 and sys.getrefcount(state.values) == references)


EntryDispatcher: Any = _Plain
InnerDispatcher: Any = None
"""None: what only compiled code calls is compiled as any other function."""

try:
    from streamsvm._compile.inner import EntryDispatcher, InnerDispatcher
    from streamsvm._compile.references import Reference as Reference
    from streamsvm._compile.references import borrowed as borrowed
    from streamsvm._compile.references import pointee as pointee
    from streamsvm._compile.references import reference_at as reference_at

    if not (config.DISABLE_JIT or numba.__version__ in _TESTED):  # type: ignore[attr-defined]
        assert _do_inner_functions_work()
except Exception as error:
    # Whatever another version of numba does.
    _log.info("numba %s has other internals (%r): compiling takes longer", numba.__version__, error)
    EntryDispatcher, InnerDispatcher = _Plain, None

    class Reference:  # type: ignore[no-redef]
        """No type: nothing is passed by reference."""

    @register_jitable  # type: ignore[untyped-decorator]
    def borrowed(state: Any) -> Any:
        """Return a state itself."""
        return state

    def pointee(kind: Any) -> Any:
        """Return a type itself."""
        return kind

    reference_at: Any = value_at  # type: ignore[no-redef]
