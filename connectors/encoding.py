"""The encoder of raw Arrow columns: numbers become floats, text becomes one-hot features."""

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from connectors.errors import NoFeaturesError, NotReadableError, SnapshotError
from connectors.kinds import Kind, cells, is_list, kind_of, plain, record_batch, to_float64

OTHER = "<other>"
"""The value that replaces all values of a text column beyond its first `max_categories`."""

# First row in which a feature occurs, its source column, and the column itself.
_Found = tuple[int, int, pa.Field, pa.Array]


class Encoder:
    """Turn raw record batches into float64 features, as columns or as events.

    * Numbers, booleans and decimals become float64 (integers beyond 2**53 are rounded); times
      become seconds since 1970, durations and times of day seconds; null = missing; NaN stays NaN.
    * Text becomes one feature a value, named ``column=value``: 1.0 where the row has it. The first
      `max_categories` values of a column, in stream order, get a feature of their own; all later
      ones share ``column=<other>``. A null has no active feature.

    `encode` and `events` agree row for row, and both meet new features in the same order: by first
    row, then by column.

    Parameters
    ----------
    schema
        The columns to encode, in order. A batch may lack some of them: their values are missing.
    max_categories
        At least 1. One-hot columns of free text would grow without end; 1000 holds every real
        category list (countries, professions) and bounds a batch of 4096 rows to 32 MB a column.

    Raises
    ------
    NotReadableError
        A column is nested or binary, or its name could be taken for a value of a text column.
    NoFeaturesError
        No column can be a feature.
    ValueError
        `max_categories` is below 1.

    Examples
    --------
    >>> batch = pa.record_batch({"age": [39, None], "sex": ["f", "m"]})
    >>> encoder = Encoder(batch.schema)
    >>> list(encoder.events(batch))
    [{'age': 39.0, 'sex=f': 1.0}, {'sex=m': 1.0}]
    >>> encoder.encode(batch).to_pydict()
    {'age': [39.0, None], 'sex=f': [1.0, 0.0], 'sex=m': [0.0, 1.0]}

    """

    def __init__(self, schema: pa.Schema, *, max_categories: int = 1000) -> None:
        if max_categories < 1:
            raise ValueError(f"max_categories must be at least 1, not {max_categories}")
        self.max_categories = max_categories
        self._kinds = _feature_kinds(schema)
        self._empty = dict.fromkeys(schema.names)
        self.rewind()

    @property
    def empty(self) -> list[str]:
        """The columns without a value in all batches encoded so far (NaN is none)."""
        return list(self._empty)

    def encode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the features of a raw batch as columns of floats, ordered by first appearance.

        They are float32 where the raw column is float32, else float64. Features that no row of the
        batch has are left out.
        """
        found: list[_Found] = []
        for index, name, column in self._columns(batch):
            if name in self._empty and not column.is_null(nan_is_null=True).to_numpy(False).all():
                del self._empty[name]
            if self._kinds[name] == "text":
                found += self._one_hot(index, name, column)
            elif column.null_count < len(column):
                first = int(column.is_valid().index(True).as_py()) if column.null_count else 0
                values = column if pa.types.is_float32(column.type) else to_float64(column)
                found.append((first, index, self._field(name, index, values.type), values))
        found.sort(key=itemgetter(0, 1))
        fields = [field for _, _, field, _ in found]
        return record_batch([column for *_, column in found], fields, batch.num_rows)

    def events(self, batch: pa.RecordBatch) -> Iterator[dict[str, float]]:
        """Yield the features of each row of a raw batch; a new category is added with its row."""
        found = list(self._columns(batch))
        names = [name for _, name, _ in found]
        vocabularies = [self._vocabulary.get(name) for name in names]
        columns: list[list[Any]] = [
            column.to_pylist() if name in self._vocabulary else cells(to_float64(column))
            for _, name, column in found
        ]
        if not columns:
            yield from ({} for _ in range(batch.num_rows))
            return
        if not any(name in self._vocabulary or column.null_count for _, name, column in found):
            # The fast path for numbers without missing values.
            yield from (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
            return
        for row in zip(*columns, strict=True):
            x: dict[str, float] = {}
            for name, vocabulary, value in zip(names, vocabularies, row, strict=True):
                if value is None:
                    continue
                if vocabulary is None:
                    x[name] = value
                else:
                    x[vocabulary.get(value) or self._feature(name, value)] = 1.0
            yield x

    def snapshot(self) -> dict[str, list[str]]:
        """Return the categories that have a feature of their own, by column, as they appeared."""
        return {name: list(values) for name, values in self._vocabulary.items()}

    def resume(self, vocabulary: Mapping[str, list[str]]) -> None:
        """Restore the categories of a snapshot; SnapshotError: it has other text columns."""
        if set(vocabulary) != set(self._vocabulary):
            raise SnapshotError(
                f"the snapshot is of a source with the text columns {sorted(vocabulary)}, "
                f"this one has {sorted(self._vocabulary)}: give it the source it was taken from"
            )
        for name, values in vocabulary.items():
            self._vocabulary[name] = {value: f"{name}={value}" for value in values}

    def rewind(self) -> None:
        """Forget all categories."""
        self._fields: dict[str, pa.Field] = {}
        # Of each text column: value -> feature name, in order of first appearance.
        self._vocabulary: dict[str, dict[str, str]] = {
            name: {} for name, kind in self._kinds.items() if kind == "text"
        }

    def _columns(self, batch: pa.RecordBatch) -> Iterator[tuple[int, str, pa.Array]]:
        """Yield index, name and plain values of the columns that the batch has."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for index, name in enumerate(self._kinds):
            column = columns.get(name)
            if column is not None and not pa.types.is_null(column.type):
                yield index, name, plain(column)

    def _feature(self, name: str, value: str) -> str:
        """Return the feature of a text value; a new value is added up to `max_categories`."""
        vocabulary = self._vocabulary[name]
        if value not in vocabulary:
            if len(vocabulary) >= self.max_categories:
                return f"{name}={OTHER}"
            vocabulary[value] = f"{name}={value}"
        return vocabulary[value]

    def _one_hot(self, index: int, name: str, column: pa.Array) -> list[_Found]:
        # The dictionary has the values in the order of their first rows.
        coded = column.dictionary_encode()
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        features = [self._feature(name, value) for value in coded.dictionary.to_pylist()]
        slots = {feature: slot for slot, feature in enumerate(dict.fromkeys(features))}
        active = np.flatnonzero(codes >= 0)
        slot_of = np.array([slots[feature] for feature in features], np.intp)[codes[active]]
        matrix = np.zeros((len(slots), len(codes)))
        matrix[slot_of, active] = 1.0
        # Assigning backwards leaves the first row of each.
        starts = np.zeros(len(slots), np.intp)
        starts[slot_of[::-1]] = active[::-1]
        fields = [self._field(feature, index, pa.float64(), name) for feature in slots]
        columns = map(pa.array, matrix)
        return list(zip(starts.tolist(), [index] * len(slots), fields, columns, strict=True))

    def _field(
        self, feature: str, index: int, kind: pa.DataType, one_hot: str | None = None
    ) -> pa.Field:
        """Return the Arrow field of a feature; its metadata lets a batch give back its events."""
        field = self._fields.get(feature)
        if field is None or field.type != kind:
            metadata = {"column": str(index)} | ({"one_hot": one_hot} if one_hot else {})
            field = self._fields[feature] = pa.field(feature, kind, metadata=metadata)
        return field


def _feature_kinds(schema: pa.Schema) -> dict[str, Kind]:
    """Return the kind of each feature column; refuse what cannot be one."""
    kinds: dict[str, Kind] = {}
    for field in schema:
        kind = kind_of(field.type)
        if kind is None:
            raise NotReadableError(
                f"column `{field.name}` has type {field.type}, which cannot be a feature "
                "(numbers, booleans, times and text can); leave it out with exclude= (--exclude)"
            )
        if kind != "null":
            kinds[field.name] = kind
    if not kinds:
        listed = ", ".join(f"`{field.name}` {field.type}" for field in schema) or "none"
        raise NoFeaturesError(
            f"no column can be a feature (columns beside the target: {listed}); "
            "a feature is a column of numbers, booleans, times or text"
        )
    for name in kinds:
        places = (i for i, c in enumerate(name) if c == "=")
        text = next((name[:i] for i in places if kinds.get(name[:i]) == "text"), None)
        if text is not None:
            raise NotReadableError(
                f"column `{name}` could be mistaken for a value of the text column `{text}`; "
                "rename one of them or leave it out with exclude= (--exclude)"
            )
    return kinds


def _holds(type_: pa.DataType, *tests: Any) -> bool:
    return is_list(type_) and any(test(type_.value_type) for test in tests)


def are_listed(schema: pa.Schema) -> bool:
    """Tell whether a schema is a column of index lists and a column of value lists.

    Parquet files have sparse rows so; the name of a feature is its index.
    """
    if len(schema) != 2:
        return False
    places, values = schema.types
    return _holds(places, types.is_integer) and _holds(values, types.is_floating, types.is_integer)


def events_of(batch: pa.RecordBatch) -> Iterator[dict[Any, float]]:
    """Yield the features of each row; none where a list is null."""
    places, values = batch.column(0).to_pylist(), batch.column(1).to_pylist()
    for row_places, row_values in zip(places, values, strict=True):
        yield dict(zip(row_places or (), row_values or (), strict=True))


class ListEncoder(Encoder):
    """The counterpart of `Encoder` for list columns, which need no encoding."""

    def __init__(self, schema: pa.Schema) -> None:
        self._names = schema.names
        self._kinds = {}  # none are texts, whose categories a snapshot keeps
        self._empty = {}  # of lists it is not known
        self.rewind()

    def encode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the two columns of a batch."""
        return batch.select(self._names)

    def events(self, batch: pa.RecordBatch) -> Iterator[dict[Any, float]]:
        """Return the features of each row."""
        return events_of(self.encode(batch))
