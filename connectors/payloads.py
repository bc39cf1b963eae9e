"""Decoders from payloads to events: JSON, Arrow, Avro, or a function of your own."""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

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


def framed(decode: str | Decoder) -> Decoder:
    """Return a decoder of payloads with the header of a schema registry: a zero, and an id.

    Parameters
    ----------
    decode
        How what follows is decoded: ``"json"`` (JSON Schema), ``"arrow"``, or a function of the
        bytes. Messages of Protobuf begin with their place in the schema, which is left to it.

    Returns
    -------
    Decoder
        The decoder. Payloads without such a header are refused.

    Examples
    --------
    >>> from connectors.payloads import framed
    >>> framed("json")(bytes([0, 0, 0, 0, 7]) + b'{"a": 1.5}')
    {'a': 1.5}

    """
    inner = decoder_of(decode)

    def decoded(value: Any) -> Any:
        _id_in(value)
        return inner(value[_REGISTRY:])

    decoded.name = f"{name_of(decode)}, header {_REGISTRY}"  # type: ignore[attr-defined]
    return decoded


def avro(
    schema: Any = None,
    header: int | None = None,
    schema_id: int | None = None,
    schema_of: Callable[[int], Any] | None = None,
) -> "AvroDecoder":
    """Return a decoder of Avro records that are written without their schema.

    All bytes of a payload belong to its record, or it is refused.

    Parameters
    ----------
    schema
        The writer's schema, as parsed JSON. With `schema_of` the schema to read by, to which
        records of others are resolved by Avro's rules; None: events are as they were written.
    header
        Bytes before the record, at least 0. 5: those of a schema registry, a zero and the schema's
        id; 10: those of Avro's single-object encoding, with the schema's fingerprint. Both are
        checked; others are passed over. None: 5 with `schema_of`, else 0.
    schema_id
        The id of `schema` in the registry; records of other ids are refused. None: that of the
        first record that can be decoded.
    schema_of
        A function of an id that returns the schema with this id, as text or parsed JSON: each
        record is read by the schema that it was written with. It is asked once for each id.

    Returns
    -------
    AvroDecoder
        The decoder.

    Raises
    ------
    ImportError
        fastavro is not installed.
    ValueError
        `schema` is no Avro schema, or the parameters contradict each other.

    Examples
    --------
    >>> from connectors.payloads import avro
    >>> fields = [{"name": "a", "type": "double"}, {"name": "spam", "type": "boolean"}]
    >>> decode = avro({"type": "record", "name": "mail", "fields": fields})
    >>> decode(bytes([0, 0, 0, 0, 0, 0, 248, 63, 1]))
    {'a': 1.5, 'spam': True}

    """
    return AvroDecoder(schema, header, schema_id, schema_of)


class _Form(NamedTuple):
    """A schema as it is used."""

    schema: Any
    fingerprint: bytes
    is_checked: bool  # whether a record of it can be written in one way only, and read from others
    name: str


def _form_of(schema: Any) -> _Form:
    """Return a schema as it is used; ValueError: it is none."""
    import fastavro

    try:
        schema = json.loads(schema) if isinstance(schema, str) and schema[:1] in "{[" else schema
        parsed: Any = fastavro.parse_schema(schema)
        canonical = fastavro.schema.to_parsing_canonical_form(parsed)
        mark = bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))
        is_checked = _has_one_form(json.loads(canonical), json.dumps(schema))
    except Exception as error:
        # fastavro's errors have no base of their own; among them are KeyError and TypeError.
        raise ValueError(f"no Avro schema: {type(error).__name__}: {error}") from error
    is_named = isinstance(parsed, dict)
    name = parsed.get("name", parsed.get("type")) if is_named else parsed
    return _Form(parsed, mark, is_checked, str(name))


class AvroDecoder:
    """Decodes Avro records that are written without their schema: see `avro`.

    `schema_id` is the id that records must have; None: there is none, or it is not known yet.
    """

    def __init__(
        self,
        schema: Any = None,
        header: int | None = None,
        schema_id: int | None = None,
        schema_of: Callable[[int], Any] | None = None,
    ) -> None:
        try:
            import fastavro
        except ImportError as error:
            raise ImportError("Avro needs fastavro: pip install fastavro") from error
        header = header if header is not None else 0 if schema_of is None else _REGISTRY
        for name, value in (("schema_id", schema_id), ("schema_of", schema_of)):
            if value is not None and header != _REGISTRY:
                raise ValueError(
                    f"{name}={value!r}: ids are in a header of {_REGISTRY} bytes: header={header!r}"
                )
        if schema_of is not None and schema_id is not None:
            raise ValueError(f"schema_id={schema_id!r}: with schema_of= records have any id")
        self._form = None if schema is None and schema_of is not None else _form_of(schema)
        self._schema_of, self._forms = schema_of, dict[int, _Form]()
        self._read, self._write = fastavro.schemaless_reader, fastavro.schemaless_writer
        self._is_given = schema_id is not None
        self.header, self.schema_id = header, schema_id
        # The same record with another field is the same stream: schemas evolve under their name.
        self.name = f"avro {'of a registry' if self._form is None else self._form.name}"
        self.name += f", header {header}"

    def __call__(self, value: bytes) -> Any:
        """Return the record of a payload; PayloadError: it holds none, or one of another schema."""
        found_id = self._check_header(value)
        form = self._form_of(found_id)
        stream = io.BytesIO(value)
        stream.seek(self.header)
        try:
            found = self._read(stream, form.schema, None)
        except Exception as error:
            raise PayloadError(f"{_no_record(error)}{self._looks(value)}") from error
        if left := len(value) - stream.tell():
            raise PayloadError(
                f"{left} of {len(value)} bytes are left after the record: it is of another schema, "
                f"or has another framing{self._looks(value)}"
            )
        if _is_json(value):
            raise PayloadError("it is JSON")
        if form.is_checked:
            # The reader takes any byte for a boolean, and numbers below 0 for symbols of an enum.
            again = io.BytesIO()
            self._write(again, form.schema, found)
            if again.getvalue() != value[self.header :]:
                raise PayloadError(
                    f"a writer of the schema writes no such bytes{self._looks(value)}"
                )
        if self._schema_of is None:
            self.schema_id = found_id
        elif self._form is not None and form.fingerprint != self._form.fingerprint:
            found = self._resolved(value, form, found_id)
        return found

    def _form_of(self, found_id: int | None) -> _Form:
        """Return the schema that a record was written with."""
        if self._schema_of is None or found_id is None:
            assert self._form is not None
            return self._form
        if found_id not in self._forms:
            try:
                self._forms[found_id] = _form_of(self._schema_of(found_id))
            except Exception as error:
                why = str(error) or type(error).__name__
                raise PayloadError(
                    f"the schema with the id {found_id} of its header cannot be had: {why}"
                ) from error
        return self._forms[found_id]

    def _resolved(self, value: bytes, form: _Form, found_id: int | None) -> Any:
        """Return a record of another schema as one of that to read by."""
        assert self._form is not None
        stream = io.BytesIO(value)
        stream.seek(self.header)
        try:
            return self._read(stream, form.schema, self._form.schema)
        except Exception as error:
            raise PayloadError(
                f"its schema, with the id {found_id}, cannot be resolved to that to read by: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _looks(self, value: bytes) -> str:
        """Return what a payload that is no record looks like, in brackets; empty: nothing."""
        if self.header or value[:1] != b"\0" or len(value) <= _REGISTRY:
            return _looks(value)
        found = int.from_bytes(value[1:_REGISTRY])
        return f" (with the header of a schema registry, header=5, its schema has the id {found})"

    def known(self) -> list[Any]:
        """Return the schema's fingerprint, and the id that its records have, for `resume`."""
        return ["" if self._form is None else self._form.fingerprint.hex(), self.schema_id]

    def resume(self, known: list[Any]) -> None:
        """Continue with the id of the same schema that `known` returned, unless one was given."""
        if not self._is_given and self._schema_of is None and known[0] == self.known()[0]:
            self.schema_id = known[1]

    def _check_header(self, value: bytes) -> int | None:
        """Refuse a payload whose header is another one; return the id in it."""
        if len(value) < self.header:
            raise PayloadError(f"{len(value)} bytes: the header alone has {self.header}")
        if self.header == _REGISTRY:
            found = _id_in(value)
            if self.schema_id not in (None, found):
                raise PayloadError(
                    f"its schema has the id {found}, and the one it is read with {self.schema_id}"
                )
            return found
        if self.header == _SINGLE_OBJECT:
            assert self._form is not None
            own = self._form.fingerprint
            mark = value[2:_SINGLE_OBJECT][::-1]
            if value[:2] != b"\xc3\x01" or mark != own:
                raise PayloadError(
                    "its header is no single-object encoding of Avro"
                    if value[:2] != b"\xc3\x01"
                    else f"its schema has the fingerprint {mark.hex()}, and the one it is read "
                    f"with {own.hex()}"
                )
        return None


_REGISTRY, _SINGLE_OBJECT = 5, 10
"""The lengths of headers that are known."""


def _id_in(value: bytes) -> int:
    """Return the id in the header of a schema registry; PayloadError: there is no such framing."""
    if len(value) < _REGISTRY:
        raise PayloadError(f"{len(value)} bytes: the header alone has {_REGISTRY}")
    if value[0]:
        raise PayloadError(
            f"its first byte is {value[0]}, where the framing of a schema registry has 0"
            f"{_looks(value)}"
        )
    return int.from_bytes(value[1:_REGISTRY])


def _framing(value: Any) -> str:
    """Return that a payload that is refused looks framed, in brackets; empty: it does not."""
    if not isinstance(value, bytes) or value[:1] != b"\0" or len(value) <= _REGISTRY:
        return ""
    found = int.from_bytes(value[1:_REGISTRY])
    return f" (it may have the framing of a schema registry, with id {found}: --header 5, framed())"


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
        try:
            return json.loads(value)
        except ValueError as error:
            if framing := _framing(value):
                raise PayloadError(f"{type(error).__name__}: {error}{framing}") from error
            raise


_CONTINUES, _END = b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\0\0\0\0"
"""What messages of a stream of Arrow begin with, and what is at its end."""


def _of_arrow(value: bytes) -> pa.RecordBatch:
    content = pa.BufferReader(value)
    try:
        reader = pa.ipc.open_stream(content)
    except pa.ArrowException as error:
        said = _looks(value) or _framing(value)
        raise PayloadError(f"no stream of Arrow: {error}{said}") from error
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
