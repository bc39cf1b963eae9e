"""How functions are compiled, kept on disk and called: the one package that uses `njit`."""

from streamsvm._compile.decorators import *
from streamsvm._compile.decorators import _compiled as _compiled
from streamsvm._compile.decorators import _StampedCache as _StampedCache
from streamsvm._compile.references import Reference as Reference
from streamsvm._compile.references import borrowed as borrowed
from streamsvm._compile.references import pointee as pointee
