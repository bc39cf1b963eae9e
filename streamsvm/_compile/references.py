"""References to states: what a compiled function passes to those that it calls.

A state is a NamedTuple of up to thirty arrays. Passed by value, it is two hundred arguments of the
machine code, at each call; passed by reference, it is one.

``borrowed(state)`` puts the tuple on the stack of the function that calls it, and returns a
reference. Attributes are read as from the tuple; those that are NamedTuples themselves are
references again. Arrays read through a reference are not counted by numba's reference counts. A
reference ends with the call that made it, and an array that was read through it keeps no memory
alive: a function that makes references and returns one, or an array, is refused when it is
compiled. The caller keeps the state alive.

Loads are marked invariant, as nothing writes to the tuple after `borrowed`: so the compiler takes
them out of loops. It may do so even past the place where the tuple is written, if that is in the
loop, too. Therefore it must not stand in a loop (a test finds those that do), and what calls it is
not compiled inline.
"""

from __future__ import annotations

import hashlib
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.core.datamodel import models
from numba.core.imputils import lower_cast, lower_getattr_generic
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, register_model


class Reference(types.Type):  # type: ignore[misc]
    """Numba's type of a reference to a NamedTuple: one pointer, whatever the tuple holds."""

    def __init__(self, target: Any) -> None:
        self.target = target
        # Names of types are parts of the names of functions: those of states have kilobytes.
        digest = hashlib.sha256(str(target).encode()).hexdigest()[:12]
        super().__init__(f"Reference({target.instance_class.__name__}, {digest})")

    @property
    def instance_class(self) -> Any:
        """The class of the NamedTuple."""
        return self.target.instance_class

    @property
    def key(self) -> Any:
        """What tells references apart: the type of the tuple."""
        return self.target

    def can_convert_to(self, typingctx: Any, other: Any) -> Any:
        """Tell that a reference is taken where the tuple is wanted: it is copied."""
        return Conversion.safe if other == self.target else None


def pointee(kind: Any) -> Any:
    """Return the type that a reference is to; another type as it is."""
    return kind.target if isinstance(kind, Reference) else kind


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, models: Any, kind: Any) -> None:
        super().__init__(models, kind, models.lookup(kind.target).get_value_type().as_pointer())


@infer_getattr
class _ReferenceAttribute(AttributeTemplate):  # type: ignore[misc]
    key = Reference

    def generic_resolve(self, kind: Any, name: str) -> Any:
        if name not in kind.target.fields:
            return None
        return _referenced(kind.target[kind.target.fields.index(name)])


def _referenced(kind: Any) -> Any:
    """Return the type of `borrowed(value)` for that of the value."""
    if isinstance(kind, types.BaseNamedTuple):
        return Reference(kind)
    if isinstance(kind, types.BaseTuple):
        return types.BaseTuple.from_types(tuple(map(_referenced, kind)))
    return kind


def _part(builder: Any, pointer: Any, *path: int) -> Any:
    """Return the address of a part of what a pointer points to."""
    return builder.gep(pointer, [ir.IntType(32)(i) for i in (0, *path)], inbounds=True)


def _invariant(builder: Any, pointer: Any) -> Any:
    value = builder.load(pointer)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def _loaded(context: Any, builder: Any, kind: Any, pointer: Any) -> Any:
    """Emit the loading of a value; its arrays have no reference count."""
    if isinstance(kind, types.BaseTuple):
        parts = [
            _loaded(context, builder, part, _part(builder, pointer, i))
            for i, part in enumerate(kind)  # type: ignore[arg-type]
        ]
        return context.make_tuple(builder, kind, parts)
    if not isinstance(kind, types.Array):
        return _invariant(builder, pointer)
    array = context.make_array(kind)(context, builder)
    names = context.data_model_manager[kind]._fields
    places = {name: _part(builder, pointer, names.index(name)) for name in names}

    def loaded_tuple(name: str) -> list[Any]:
        return [_invariant(builder, _part(builder, places[name], i)) for i in range(kind.ndim)]

    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    array.meminfo, array.parent = array.meminfo.type(None), array.parent.type(None)
    array.nitems = _invariant(builder, places["nitems"])
    array.itemsize = context.get_constant(types.intp, size)
    array.data = _invariant(builder, places["data"])
    shape, strides = loaded_tuple("shape"), loaded_tuple("strides")
    if kind.layout == "C":
        strides[-1] = array.itemsize
    array.shape = cgutils.pack_array(builder, shape, cgutils.intp_t)
    array.strides = cgutils.pack_array(builder, strides, cgutils.intp_t)
    return array._getvalue()


@lower_getattr_generic(Reference)
def _attribute(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    place = kind.target.fields.index(name)
    found, pointer = kind.target[place], _part(builder, value, place)
    if isinstance(found, types.BaseNamedTuple):
        return pointer
    return _loaded(context, builder, found, pointer)


@lower_cast(Reference, types.BaseNamedTuple)
def _to_tuple(context: Any, builder: Any, kind: Any, wanted: Any, value: Any) -> Any:
    return _loaded(context, builder, kind.target, value)


def _lent(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Emit `borrowed(value)`; arrays of plain tuples lose their reference counts."""
    if isinstance(kind, types.BaseNamedTuple):
        return cgutils.alloca_once_value(builder, value)
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo, array.parent = array.meminfo.type(None), array.parent.type(None)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts = cgutils.unpack_tuple(builder, value, len(kind))  # type: ignore[arg-type]
        lent = [_lent(context, builder, *pair) for pair in zip(kind, parts, strict=True)]  # type: ignore[call-overload]
        return context.make_tuple(builder, _referenced(kind), lent)
    return value


@intrinsic
def _borrowed_compiled(typing: Any, state: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return _lent(context, builder, signature.args[0], args[0])

    return _referenced(state)(state), codegen


@intrinsic
def _at_compiled(typing: Any, address: Any, kind: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return Reference(kind.instance_type)(address, kind), codegen


borrowed: Any = _borrowed_compiled if not config.DISABLE_JIT else lambda state: state  # type: ignore[attr-defined]
"""Return references to a state, or to those in a tuple, for the functions that are called.

Only for states that the caller keeps alive.
"""

reference_at: Any = _at_compiled if not config.DISABLE_JIT else lambda value, kind: value  # type: ignore[attr-defined]
"""Return a reference to a NamedTuple at an address, which `words_of` describes.

`kind` is its type, as numba's `TypeRef`. What calls this is itself called by address only, and so
is never compiled inline.
"""
