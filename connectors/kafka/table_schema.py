"""Schemas of messages that are Arrow tables: which can be learnt, and which columns are texts."""

from collections.abc import Callable

import pyarrow as pa

from connectors.kinds import kind_of, plain_type
from connectors.payloads import PayloadError


class TableSchemas:
    """Checks the schemas of messages; one that is as the last one is not looked at again."""

    def __init__(self, target: str, is_used: Callable[[str], bool]) -> None:
        self._target, self._is_used = target, is_used
        self._last: pa.Schema | None = None
        self._last_texts: tuple[pa.Schema | None, list[str]] = (None, [])

    def check(self, schema: pa.Schema) -> None:
        """Refuse a schema with a column that cannot be used, by a `PayloadError`."""
        if self._last is not None and schema.equals(self._last):
            return
        if len(set(schema.names)) < len(schema):
            raise PayloadError("two columns have one name")
        for field in schema:
            kind = kind_of(field.type)
            if kind is None and self._is_used(field.name):
                raise PayloadError(f"column `{field.name}` is {field.type}: no feature")
            is_decimal = pa.types.is_decimal(plain_type(field.type))
            if field.name == self._target and (kind in ("time", "duration") or is_decimal):
                raise PayloadError(
                    f"the label `{field.name}` is {field.type}: use texts, numbers or booleans"
                )
        self._last = schema

    def texts(self, schema: pa.Schema) -> list[str]:
        """Return the names of the columns that are texts."""
        last, found = self._last_texts
        if last is None or not schema.equals(last):
            found = [field.name for field in schema if kind_of(field.type) == "text"]
            self._last_texts = (schema, found)
        return found
