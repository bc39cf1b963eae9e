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
    if isinstance(value, bytes) or not isinstance(value, (Mapping, pa.RecordBatch)):
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
        if isinstance(error, PayloadError):
            raise PayloadError(f"{failed}: {error}") from error
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise PayloadError(f"{failed}: {reason}") from error
    if not isinstance(found, (dict, Mapping, pa.RecordBatch)):
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


def avro(schema: Any, header: int = 0, schema_id: int | None = None) -> "AvroDecoder":
    """Return a decoder of Avro records that are written without their schema.

    All bytes of a payload belong to its record, or it is refused.

    Parameters
    ----------
    schema
        The writer's schema, as parsed JSON.
    header
        Bytes before the record, at least 0. 5: those of a schema registry, a zero and the schema's
        id; 10: those of Avro's single-object encoding, with the schema's fingerprint. Both are
        checked; others are passed over.
    schema_id
        The id of `schema` in the registry; records of other ids are refused. None: that of the
        first record that can be decoded.

    Returns
    -------
    AvroDecoder
        The decoder.

    Raises
    ------
    ImportError
        fastavro is not installed.
    ValueError
        `schema` is no Avro schema, or `schema_id` is given with another header.

    Examples
    --------
    >>> from connectors.payloads import avro
    >>> fields = [{"name": "a", "type": "double"}, {"name": "spam", "type": "boolean"}]
    >>> decode = avro({"type": "record", "name": "mail", "fields": fields})
    >>> decode(bytes([0, 0, 0, 0, 0, 0, 248, 63, 1]))
    {'a': 1.5, 'spam': True}

    """
    return AvroDecoder(schema, header, schema_id)


class AvroDecoder:
    """Decodes Avro records that are written without their schema: see `avro`.

    `schema_id` is the id that records must have; None: there is none, or it is not known yet.
    """

    def __init__(self, schema: Any, header: int = 0, schema_id: int | None = None) -> None:
        try:
            import fastavro
        except ImportError as error:
            raise ImportError("Avro needs fastavro: pip install fastavro") from error
        if schema_id is not None and header != _REGISTRY:
            raise ValueError(
                f"schema_id={schema_id!r} is in a header of {_REGISTRY} bytes: header={header!r}"
            )
        try:
            self._schema: Any = fastavro.parse_schema(schema)
            canonical = fastavro.schema.to_parsing_canonical_form(self._schema)
            mark = fastavro.schema.fingerprint(canonical, "CRC-64-AVRO")
            self._is_checked = _has_one_form(json.loads(canonical), json.dumps(schema))
        except Exception as error:
            # fastavro's errors have no base of their own; among them are KeyError and TypeError.
            raise ValueError(f"no Avro schema: {type(error).__name__}: {error}") from error
        self._read, self._write = fastavro.schemaless_reader, fastavro.schemaless_writer
        self._fingerprint = bytes.fromhex(mark)
        self._is_given = schema_id is not None
        self.header, self.schema_id = header, schema_id
        # The same record with another field is the same stream: schemas evolve under their name.
        of = self._schema
        self.name = f"avro {of.get('name', of.get('type')) if isinstance(of, dict) else of}"
        self.name += f", header {header}"

    def __call__(self, value: bytes) -> Any:
        """Return the record of a payload; PayloadError: it holds none, or one of another schema."""
        found_id = self._check_header(value)
        stream = io.BytesIO(value)
        stream.seek(self.header)
        try:
            found = self._read(stream, self._schema, None)
        except Exception as error:
            raise PayloadError(f"{_no_record(error)}{self._looks(value)}") from error
        if left := len(value) - stream.tell():
            raise PayloadError(
                f"{left} of {len(value)} bytes are left after the record: it is of another schema, "
                f"or begins with a header{self._looks(value)}"
            )
        if _is_json(value):
            raise PayloadError("it is JSON")
        if self._is_checked:
            # The reader takes any byte for a boolean, and numbers below 0 for symbols of an enum.
            again = io.BytesIO()
            self._write(again, self._schema, found)
            if again.getvalue() != value[self.header :]:
                raise PayloadError(
                    f"a writer of the schema writes no such bytes{self._looks(value)}"
                )
        self.schema_id = found_id
        return found

    def _looks(self, value: bytes) -> str:
        """Return what a payload that is no record looks like, in brackets; empty: nothing."""
        if self.header or value[:1] != b"\0" or len(value) <= _REGISTRY:
            return _looks(value)
        found = int.from_bytes(value[1:_REGISTRY])
        return f" (with the header of a schema registry, header=5, its schema has the id {found})"

    def known(self) -> list[Any]:
        """Return the schema's fingerprint, and the id that its records have, for `resume`."""
        return [self._fingerprint.hex(), self.schema_id]

    def resume(self, known: list[Any]) -> None:
        """Continue with the id of the same schema that `known` returned, unless one was given."""
        if not self._is_given and known[0] == self._fingerprint.hex():
            self.schema_id = known[1]

    def _check_header(self, value: bytes) -> int | None:
        """Refuse a payload whose header is another one; return the id in it."""
        if len(value) < self.header:
            raise PayloadError(f"{len(value)} bytes: the header alone has {self.header}")
        if self.header == _REGISTRY:
            if value[0]:
                raise PayloadError(
                    f"its first byte is {value[0]}, where the header of a schema registry has 0"
                    f"{_looks(value)}"
                )
            found = int.from_bytes(value[1:_REGISTRY])
            if self.schema_id not in (None, found):
                raise PayloadError(
                    f"its schema has the id {found}, and the one it is read with {self.schema_id}"
                )
            return found
        if self.header == _SINGLE_OBJECT:
            mark = value[2:_SINGLE_OBJECT][::-1]
            if value[:2] != b"\xc3\x01" or mark != self._fingerprint:
                raise PayloadError(
                    "its header is no single-object encoding of Avro"
                    if value[:2] != b"\xc3\x01"
                    else f"its schema has the fingerprint {mark.hex()}, and the one it is read "
                    f"with {self._fingerprint.hex()}"
                )
        return None


_REGISTRY, _SINGLE_OBJECT = 5, 10
"""The lengths of headers that are known."""


def _has_one_form(canonical: Any, text: str) -> bool:
    """Tell whether a record of a schema can be written in one way only, and read from others."""
    if not any(kind in json.dumps(canonical) for kind in ('"boolean"', '"enum"', '"type": [')):
        return False
    # Blocks of arrays and maps are cut as the writer likes; texts of a UUID may be upper case.
    if any(f'"{kind}"' in text for kind in ("array", "map", "logicalType")):
        return False
    # Of several branches, a writer may choose another one than the first that fits.
    left = [canonical]
    while left:
        one = left.pop()
        if isinstance(one, list) and len([kind for kind in one if kind != "null"]) > 1:
            return False
        left += one if isinstance(one, list) else []
        if isinstance(one, dict):
            left += [one["type"], *(field["type"] for field in one.get("fields", ()))]
    return True


def _no_record(error: Exception) -> str:
    """Return what an error of the reader says of a payload."""
    # The reader's own words name an object of Python.
    why = "it ends too early" if isinstance(error, EOFError) else f"{type(error).__name__}: {error}"
    return f"no record of the schema: {why}"


def _is_json(value: bytes) -> bool:
    """Tell whether bytes are an object or a list of JSON."""
    if value.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        json.loads(value)
    except ValueError:
        return False
    return True


def _looks(value: bytes) -> str:
    """Return what a binary payload that is refused looks like, in brackets; empty: nothing."""
    if value[:1] in (b"{", b"["):
        return " (it looks like JSON)"
    if value[:4] == b"Obj\x01":
        return " (it is a file of Avro, with its schema)"
    if value[:6] == b"ARROW1":
        return " (it is a file of Arrow: send it as a stream)"
    if value[:4] == _CONTINUES:
        return " (it looks like a stream of Arrow)"
    return ""


try:
    # Four times as fast. It reads fewer texts (no NaN, no lone surrogates), and those alike.
    from msgspec.json import Decoder as _QuickDecoder
except ImportError:
    _quickly: Callable[[Any], Any] = json.loads
else:
    _quickly = _QuickDecoder().decode


def _of_json(value: bytes) -> Any:
    try:
        return _quickly(value)
    except Exception:  # whatever it says: it may be JSON, or the error that is shown is Python's
        return _of_any_json(value)


def _of_any_json(value: bytes) -> Any:
    try:
        # Nearly all are UTF-8 without a mark; `loads` would look for other encodings first.
        return json.loads(str(value, "utf-8"))
    except (TypeError, ValueError):
        return json.loads(value)


_CONTINUES, _END = b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\0\0\0\0"
"""What messages of a stream of Arrow begin with, and what is at its end."""


def _of_arrow(value: bytes) -> pa.RecordBatch:
    content = pa.BufferReader(value)
    try:
        reader = pa.ipc.open_stream(content)
    except pa.ArrowException as error:
        raise PayloadError(f"no stream of Arrow: {error}{_looks(value)}") from error
    with reader:
        batches = list(reader)
        if left := len(value) - content.tell():
            raise PayloadError(f"{left} of {len(value)} bytes are left after the stream of Arrow")
        if value[:4] == _CONTINUES and value[-8:] != _END:
            # It may have been cut between two batches.
            raise PayloadError(
                "the stream of Arrow has no end: it was cut, or its writer not closed"
            )
        if len(batches) == 1:
            # As in most messages; making a table of it takes longer than reading it.
            return batches[0]
        return one_batch(pa.Table.from_batches(batches, reader.schema))


_DECODERS: dict[str, Decoder] = {"json": _of_json, "arrow": _of_arrow}
