"""Decoders from payloads to events: JSON, Arrow, Avro, or a function of your own."""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from connectors.kinds import one_batch

Decoder: TypeAlias = Callable[[Any], Mapping[str, Any] | pa.RecordBatch]
"""A function from the bytes of a message to an event, or to a record batch of events."""


class PayloadError(ValueError):
    """A payload that is no event; the message says why."""


def decoder_of(decode: str | Decoder) -> Decoder:
    """Return the decoder named ``"json"`` or ``"arrow"``; a callable is returned unchanged."""
    if callable(decode):
        return decode
    if decode not in _DECODERS:
        names = ", ".join(repr(name) for name in _DECODERS)
        raise ValueError(f"decode={decode!r}: use {names}, or a function of the bytes")
    return _DECODERS[decode]


def name_of(decode: str | Decoder) -> str:
    """Return a decoder's attribute `name`, or its name in Python, by which a snapshot knows it."""
    if isinstance(decode, str):
        return decode
    named = getattr(decode, "name", None) or getattr(decode, "__qualname__", None)
    return str(named or type(decode).__qualname__)


def content_of(value: Any, decode: Decoder, transform: Decoder | None) -> Any:
    """Return the content of a payload, transformed if there is a function for that.

    PayloadError: it holds no event. Another error: it is a damaged record batch.
    """
    if value is None:
        raise PayloadError("the message has no payload (a tombstone)")
    found = value
    if not isinstance(value, (Mapping, pa.RecordBatch)):
        found = _called(decode, value, "the payload cannot be decoded", "the payload is")
    if transform is not None:
        name = name_of(transform)
        found = _called(transform, found, f"{name} cannot be applied", f"{name} returned")
    if isinstance(found, pa.RecordBatch):
        # Offsets beyond the data, and text that is not UTF-8, would be found too late.
        found.validate(full=True)
    return found


def _called(function: Decoder, value: Any, failed: str, returned: str) -> Any:
    """Return what a function of the user's makes of a value; `failed`, `returned`: for messages."""
    try:
        found = function(value)
    except Exception as error:
        # It may raise anything; a bad payload must not stop the stream.
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise PayloadError(f"{failed}: {reason}") from error
    if not isinstance(found, (Mapping, pa.RecordBatch)):
        raise PayloadError(f"{returned} a {type(found).__name__}, not an object of features")
    return found


def flatten(found: Any) -> Any:
    """Return an event whose nested objects are fields of their own: ``user.age``.

    Parameters
    ----------
    found
        A mapping, or a record batch, whose struct columns are taken apart.

    Returns
    -------
    dict[str, Any] | pa.RecordBatch
        The same without nesting; lists stay as they are.

    Raises
    ------
    ValueError
        Two fields would have the same name.

    Examples
    --------
    >>> from connectors.payloads import flatten
    >>> flatten({"user": {"age": 39, "home": {"zip": "10115"}}, "amount": 7.5})
    {'user.age': 39, 'user.home.zip': '10115', 'amount': 7.5}

    """
    if isinstance(found, pa.RecordBatch):
        table = pa.Table.from_batches([found])
        while any(pa.types.is_struct(type_) for type_ in table.schema.types):
            table = table.flatten()
        return one_batch(table)
    flat: dict[str, Any] = {}
    # A stack of iterators: a payload may be nested more deeply than Python may call.
    left = [("", iter(found.items()))]
    while left:
        prefix, items = left[-1]
        item = next(items, None)
        if item is None:
            left.pop()
            continue
        name, value = item
        if isinstance(value, Mapping):
            left.append((f"{prefix}{name}.", iter(value.items())))
        elif f"{prefix}{name}" in flat:
            raise ValueError(f"there are two fields `{prefix}{name}`")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def avro(schema: Any, header: int = 0) -> Decoder:
    """Return a decoder of Avro records that are written without their schema.

    Parameters
    ----------
    schema
        The writer's schema, as parsed JSON.
    header
        Bytes before the record, at least 0: 5 for records of a schema registry.

    Returns
    -------
    Decoder
        The decoder.

    Raises
    ------
    ImportError
        fastavro is not installed.
    ValueError
        `schema` is no Avro schema.

    Examples
    --------
    >>> from connectors.payloads import avro
    >>> fields = [{"name": "a", "type": "double"}, {"name": "spam", "type": "boolean"}]
    >>> decode = avro({"type": "record", "name": "mail", "fields": fields})
    >>> decode(bytes([0, 0, 0, 0, 0, 0, 248, 63, 1]))
    {'a': 1.5, 'spam': True}

    """
    try:
        import fastavro
    except ImportError as error:
        raise ImportError("Avro needs fastavro: pip install fastavro") from error
    try:
        parsed = fastavro.parse_schema(schema)
    except Exception as error:
        # fastavro's errors have no base of their own; among them are KeyError and TypeError.
        raise ValueError(f"no Avro schema: {type(error).__name__}: {error}") from error

    def decode(value: bytes) -> Any:
        stream = io.BytesIO(value)
        stream.seek(header)
        return fastavro.schemaless_reader(stream, parsed, None)

    # The same record with another field is the same stream: schemas evolve under their name.
    name = parsed.get("name", parsed.get("type")) if isinstance(parsed, dict) else parsed
    decode.name = f"avro {name}, header {header}"  # type: ignore[attr-defined]
    return decode


def _of_json(value: bytes) -> Any:
    try:
        # Nearly all are UTF-8 without a mark; `loads` would look for other encodings first.
        return json.loads(str(value, "utf-8"))
    except (TypeError, ValueError):
        return json.loads(value)


def _of_arrow(value: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(value) as reader:
        batches = list(reader)
        if len(batches) == 1:
            # As in most messages; making a table of it takes longer than reading it.
            return batches[0]
        return one_batch(pa.Table.from_batches(batches, reader.schema))


_DECODERS: dict[str, Decoder] = {"json": _of_json, "arrow": _of_arrow}
