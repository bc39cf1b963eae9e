"""The base of all sources of Arrow columns: everything except reading the raw rows."""

import operator
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.batch import Batch, Event, Position, Reject, WeightedEvent
from connectors.columns import (
    KEPT,
    column_of_numbers,
    feature_columns,
    labels_in,
    parsed,
    shown_row,
    target_type,
    texts_not_utf8,
    with_numbers,
    without_tokens,
)
from connectors.cursor import Chunk, Cursor, Place, ShuffledCursor
from connectors.encoding import Encoder, ListEncoder, are_listed
from connectors.errors import (
    MissingColumnError,
    NotReadableError,
    SnapshotError,
    SourceError,
)
from connectors.identity import FileIdentity, check_file, check_settings
from connectors.kinds import kind_of, record_batch
from connectors.source import DEFAULT_BATCH_SIZE, BaseSource, Snapshot
from connectors.text_looks import TextLooks

# What every snapshot holds; those of older releases hold no "content".
_NEEDED = {"file", "row", "block", "offset", "seed", "settings", "vocabulary", "content"}


class TabularOptions(TypedDict, total=False):
    """The parameters that all tabular sources have: see `TabularSource`."""

    columns: Sequence[str] | None
    exclude: Sequence[str]
    batch_size: int
    shuffle_buffer: int
    seed: int | None
    timestamp: str | None
    weight: str | None
    keep: Sequence[str]
    parse_numbers: Sequence[str]
    max_categories: int
    decimal: str
    missing_tokens: Sequence[str]
    as_text: Sequence[str]
    label_kind: Literal["text", "number"] | None


class TabularSource(BaseSource):
    """A source of rows with a target column and feature columns.

    A subclass returns the raw rows from any position (`_read`) and checks positions (`_check`).
    This class splits off the target, encodes, shuffles, and makes snapshots.

    Parameters
    ----------
    schema
        All columns of the data, in order.
    name
        What to call the source in messages.
    start
        The position of the first row.
    target
        The column of labels, given as Python values of their own type; None = no labels.
    columns
        The feature columns, in this order; None, the default: all but the target, the timestamp and
        the weight (and pandas' stored index).
    exclude
        Columns that are no features, though `columns` would make them some.
    batch_size
        Rows a batch, at least 1; 4096 by default hides Arrow's cost a call and stays in the cache.
    shuffle_buffer
        Shuffle within blocks of so many rows, which are held in memory; blocks end at the ends of
        files. 0, the default: in order.
    seed
        Seed of the shuffling, at least 0; None, the default: drawn once and kept in the snapshots.
    timestamp
        The column that says when an event happened (a time, or seconds since 1970; numbers from
        1e11 on are milliseconds, and so on). It is a feature only if `columns` lists it. None by
        default.
    weight
        The column of each example's weight, a number of at least 0; it is no feature. None, the
        default: all weigh 1.
    keep
        Columns of any type that batches have as they are, under `kept`, such as keys; features,
        too, only if `columns` lists them. None by default.
    parse_numbers
        Text columns that are read as numbers, or times in seconds since 1970 (ISO 8601; UTC unless
        they say otherwise), not one-hot; a row whose text is neither is set aside.
    decimal
        What is before the fraction of numbers that are written as texts, in CSV files and columns
        of `parse_numbers`: ``"."`` by default, or ``","`` (1.234,5 is 1234.5 then).
    missing_tokens
        Texts that stand for a missing value, such as ``["?", "-"]``, in features and labels.
    as_text
        Columns whose type is known by their values only (see `told_by_values`) that are texts
        nevertheless, as codes of digits are; others are as they are.
    label_kind
        ``"text"`` or ``"number"``: what the labels of a model are. Those of a type known by their
        values only are read so. None, the default: as what they look like.
    max_categories
        Values of a text column that get a feature of their own, 1000 by default: see `Encoder`.
    filters
        The filter of the subclass, as text; a snapshot of a source with another filter is refused.

    Attributes
    ----------
    kinds : dict[str, str | None]
        The kind of each feature column (see `kind_of`); None for columns of lists.
    number_texts : TextLooks
        Has the `names` of text columns whose first 1,000 rows hold numbers or times only, and
        `findings` on those whose texts should not be learnt as categories.
    told_by_values : frozenset[str]
        The columns whose types are known by their values only: those of text files and folders.

    Raises
    ------
    MissingColumnError
        The target, the timestamp, one of `columns` or of `exclude` is not among the data.
    NotReadableError
        A column has a type that cannot be what it is asked to be, or two columns share a name.
    NoFeaturesError
        No column can be a feature.
    SourceError
        The target is also listed in `columns`.

    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        name: str,
        start: Position,
        target: str | None,
        columns: Sequence[str] | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        shuffle_buffer: int = 0,
        seed: int | None = None,
        timestamp: str | None = None,
        max_categories: int = 1000,
        filters: str | None = None,
        exclude: Sequence[str] = (),
        weight: str | None = None,
        keep: Sequence[str] = (),
        parse_numbers: Sequence[str] = (),
        decimal: str = ".",
        missing_tokens: Sequence[str] = (),
        as_text: Sequence[str] = (),
        label_kind: Literal["text", "number"] | None = None,
    ) -> None:
        if decimal not in (".", ","):
            raise ValueError(f"decimal={decimal!r}: use '.' or ','")
        del label_kind, as_text  # for those that read texts
        if isinstance(missing_tokens, str):
            raise SourceError(f"missing_tokens must be a list, not the text {missing_tokens!r}")
        self.decimal, self.missing_tokens = decimal, list(missing_tokens)
        sizes = (("batch_size", batch_size, 1), ("shuffle_buffer", shuffle_buffer, 0))
        for parameter, value, least in (*sizes, ("seed", seed, 0)):
            if value is not None and operator.index(value) < least:
                raise ValueError(f"{parameter} must be at least {least}, not {value}")
        self._name, self._kind = name, type(self).__name__
        self._start = start
        self.target = target
        self.timestamp, self.weight = timestamp, weight
        self.batch_size = batch_size
        names = set(schema.names)
        if missing := [column for column in keep if column not in names]:
            raise MissingColumnError(missing[0], schema.names, name, self._role_of(missing[0]))
        self.keep = list(keep)
        others = keep if columns is None and not isinstance(exclude, str) else ()
        left_out = [*exclude, *others] if others else exclude
        self.features = feature_columns(schema, name, target, columns, timestamp, left_out, weight)
        self._used = {*self.features, *keep, target, timestamp, weight} - {None}
        self._parse_numbers, self._max_categories = list(parse_numbers), max_categories
        self.number_texts = TextLooks()
        self._target_type = target_type(schema, target)
        self._set_features(schema, parse_numbers)
        self._seed = None if seed is None else int(seed)
        self._cursor: Cursor
        if shuffle_buffer:
            drawn = int(np.random.SeedSequence().generate_state(1)[0])
            seed = drawn if self._seed is None else self._seed
            self._cursor = ShuffledCursor(self._prepared, start, shuffle_buffer, seed)
        else:
            self._cursor = Cursor(self._prepared, start)
        # A snapshot is refused if one of these differs.
        self._settings = {
            "target": target,
            "columns": None if columns is None else list(columns),
            "filters": filters,
            "shuffle_buffer": int(shuffle_buffer),
            "max_categories": int(max_categories),
            "timestamp": timestamp,
            "exclude": list(exclude),
            "weight": weight,
            "parse_numbers": sorted(parse_numbers),
            "decimal": decimal,
            "missing_tokens": sorted(missing_tokens),
        }

    def _set_features(self, schema: pa.Schema, parse_numbers: Sequence[str]) -> None:
        """Set kinds and encoder of the feature columns."""
        chosen = with_numbers(schema, self.features, parse_numbers, self._name)
        types, own = (
            dict(zip(chosen.names, chosen.types, strict=True)),
            dict(zip(schema.names, schema.types, strict=True)),
        )
        self.kinds = {name: kind_of(types[name]) for name in self.features}
        self._as_numbers = [n for n in self.features if types[n] != own[n]]
        fields = pa.schema([(name, types[name]) for name in self.features])
        self._encoder = self._encoder_of(fields, self._max_categories)

    number_texts: TextLooks
    told_by_values: frozenset[str] = frozenset()

    @property
    def label_kind(self) -> str | None:
        """The kind of the labels, as `kind_of`; None: they are lists."""
        return kind_of(self._target_type)

    @property
    def empty_columns(self) -> list[str]:
        """The feature columns without a value in the batches read so far."""
        return self._encoder.empty

    _identity: FileIdentity | None = None
    """Of a source of one file: what it is, by its content."""

    @abstractmethod
    def _read(self, start: Position) -> Iterator[Chunk]:
        """Give the raw rows from a position on, as chunks of plain columns (see `plain_batch`)."""

    def _prepared(self, start: Position) -> Iterator[Chunk]:
        """Give what `_read` gives, without texts that stand for missing values."""
        names = {name for name in (*self.features, self.target) if name is not None}
        for chunk in self._read(start):
            if self.missing_tokens:
                data = without_tokens(chunk.data, self.missing_tokens, names)
                chunk = chunk._replace(data=data)
            yield chunk

    def _kept(self, data: pa.RecordBatch) -> pa.RecordBatch | None:
        """Return the columns to keep: their texts, where the source has them apart."""
        if not self.keep:
            return None
        known = set(data.schema.names)
        columns = [data.column(KEPT + n if KEPT + n in known else n) for n in self.keep]
        fields = [pa.field(n, c.type) for n, c in zip(self.keep, columns, strict=True)]
        return record_batch(columns, fields, data.num_rows)

    def _read_as(self, texts: Collection[str]) -> None:
        """Read the columns of these names as texts, and others not, as far as that is open."""

    def _check(self, position: Position) -> None:
        """Raise if reading cannot start at a position: SnapshotError if there is no such row."""
        if position.file != self._start.file:
            raise SnapshotError(
                f"the snapshot continues in `{position.file}`, this source reads "
                f"`{self._start.file or self.name}`"
            )

    def _content(self, position: Position) -> Any:
        """Return what identifies the data read up to a position, as JSON values."""
        del position
        return None if self._identity is None else list(self._identity)

    def _check_content(self, content: Any) -> None:
        """Raise a SnapshotError if the data are not those that `_content` was about."""
        if self._identity is not None:
            check_file(content, self._identity)

    def _role_of(self, column: str) -> str:
        """Return what a column to keep is called in messages."""
        return "keep"

    def _encoder_of(self, fields: pa.Schema, max_categories: int) -> Encoder | ListEncoder:
        """Return what makes features of the feature columns."""
        if are_listed(fields):
            return ListEncoder(fields)
        return Encoder(fields, max_categories=max_categories)

    @property
    @abstractmethod
    def n_rows(self) -> int | None:
        """All rows from start to end if that is cheap to know, for a progress bar."""

    def events(self) -> Iterator[Event]:
        """Return the unread events, one by one."""
        cursor = self._cursor
        while (chunk := cursor.peek(self.batch_size)) is not None:
            version = cursor.version
            for event in self._decoded(chunk):
                cursor.advance(1)
                version += 1
                yield event
                if cursor.version != version:
                    # Another iterator, a resume or a rewind has moved the cursor.
                    break

    def _position(self) -> Snapshot:
        place = self._cursor.place
        return {
            "file": place.position.file,
            "row": place.position.row,
            "block": place.block,
            "offset": place.offset,
            "seed": self._cursor.seed,
            "settings": dict(self._settings),
            "vocabulary": self._encoder.snapshot(),
            "content": self._content(place.position),
        }

    def _resume(self, snapshot: Mapping[str, Any]) -> None:
        if missing := _NEEDED - snapshot.keys():
            raise SnapshotError(f"not a snapshot of a {self._kind}: it lacks {sorted(missing)}")
        own = dict(self._settings)
        if self._cursor.seed is not None and self._seed is not None:
            own["seed"] = self._seed
        check_settings({**snapshot["settings"], "seed": snapshot["seed"]}, own)
        position = Position(snapshot["file"], snapshot["row"])
        self._check(position)
        self._check_content(snapshot["content"])
        self._read_as(snapshot["vocabulary"])
        self._encoder.resume(snapshot["vocabulary"])
        self._cursor.seed = snapshot["seed"]
        self._cursor.move(Place(position, snapshot["block"], snapshot["offset"]))

    def rewind(self) -> None:
        """Go back to the start, for another epoch of the very same events."""
        self._check(self._start)
        self._encoder.rewind()
        self._cursor.move(Place(self._start))

    def close(self) -> None:
        """Release files; reading again reopens them where reading stopped."""
        self._cursor.move(self._cursor.place)

    def upcoming_timestamps(self, limit: int) -> npt.NDArray[np.float64] | None:
        """Return the timestamps of the next unread rows: see `Source`."""
        if self.timestamp is None:
            return None
        chunk = self._cursor.peek(limit)
        return np.empty(0) if chunk is None else self._moments(chunk)

    def __repr__(self) -> str:
        """Return the class, the name and the position of the source."""
        return f"<{type(self).__name__} {self._name!r} at {self._cursor.place.position}>"

    def _batches(self, size: int) -> Iterator[Batch]:
        cursor = self._cursor
        while (chunk := cursor.peek(size)) is not None:
            good, rejects = self._readable(chunk)
            if not self.number_texts.is_done:
                parsing = set(self._as_numbers)
                texts = [n for n, k in self.kinds.items() if k == "text" and n not in parsing]
                self.number_texts.look(good.data, texts)
            batch = Batch(
                features=self._encoder.encode(self._with_numbers(good.data)[0]),
                labels=self._labels(good),
                rows=good.rows,
                file=good.file,
                timestamps=self._moments(good),
                rejects=rejects,
                weights=self._numbers(good, self.weight),
                kept=self._kept(good.data),
            )
            cursor.advance(chunk.num_rows)
            yield batch

    def _readable(self, chunk: Chunk) -> tuple[Chunk, tuple[Reject, ...]]:
        """Return the rows that are events, and the other ones."""
        if not (faults := self._faults(chunk)):
            return chunk, ()
        good = np.setdiff1d(np.arange(chunk.num_rows), list(faults))
        return chunk.take(good), tuple(faults[i] for i in sorted(faults))

    def _faults(self, chunk: Chunk) -> dict[int, Reject]:
        """Return which rows of a chunk are no events."""
        found = [("no number", i, why) for i, why in self._with_numbers(chunk.data)[1].items()]
        found += [("not UTF-8", i, why) for i, why in texts_not_utf8(chunk.data).items()]
        at = {i: Position(chunk.file, int(chunk.rows[i])) for _, i, _ in found}
        kept = self._kept(chunk.data) if found else None
        return {
            i: Reject(at[i], kind, why, shown_row(chunk.data, i), _values_of(kept, i))
            for kind, i, why in found
        }

    def _decoded(self, chunk: Chunk) -> Iterator[Event]:
        if faults := self._faults(chunk):
            first = min(faults)
            yield from self._decoded(chunk.slice(0, first))
            raise NotReadableError(
                f"{faults[first].position}: {faults[first].reason}; convert it, leave the column "
                "out with columns=, or read batches, which set such rows aside"
            )
        labels, rows = self._labels(chunk).to_pylist(), chunk.rows.tolist()
        data, weights = self._with_numbers(chunk.data)[0], self._numbers(chunk, self.weight)
        events: Iterator[dict[Any, float]] = self._encoder.events(data)
        for i, (x, y, row) in enumerate(zip(events, labels, rows, strict=True)):
            event = Event(x, y, Position(chunk.file, row))
            yield event if weights is None else WeightedEvent.of(event, float(weights[i]))

    def _with_numbers(self, data: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[int, str]]:
        return parsed(data, self._as_numbers, self.decimal)

    def _labels(self, chunk: Chunk) -> pa.Array:
        at = -1 if self.target is None else chunk.data.schema.get_field_index(self.target)
        if at < 0:
            return pa.nulls(chunk.num_rows, self._target_type)
        return labels_in(chunk.data.column(at))

    def _numbers(self, chunk: Chunk, name: str | None) -> npt.NDArray[np.float64] | None:
        """Return a column of times or numbers, NaN = missing; None if there is no such column."""
        return None if name is None else column_of_numbers(chunk.data, name)

    def _moments(self, chunk: Chunk) -> npt.NDArray[np.float64] | None:
        """Return the timestamps in seconds, NaN = missing; None if there is no such column."""
        found = self._numbers(chunk, self.timestamp)
        return None if found is None else self.number_texts.in_seconds(found, str(self.timestamp))


def _values_of(kept: pa.RecordBatch | None, i: int) -> dict[str, Any] | None:
    """Return the values of a row in the columns to keep; None for a text that is not UTF-8."""
    if kept is None:
        return None
    found: dict[str, Any] = {}
    for name, column in zip(kept.schema.names, kept.columns, strict=True):
        try:
            found[name] = column[i].as_py()
        except UnicodeDecodeError:
            found[name] = None
    return found
