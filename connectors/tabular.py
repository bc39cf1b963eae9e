"""The base of all sources of Arrow columns: everything except reading the raw rows."""

import operator
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.columns import (
    column_of_numbers,
    feature_columns,
    parsed,
    shown_row,
    target_type,
    texts_not_utf8,
    with_numbers,
)
from connectors.cursor import Chunk, Cursor, Place, ShuffledCursor
from connectors.encoding import Encoder, ListEncoder, are_listed
from connectors.errors import MissingColumnError, NotReadableError, SnapshotError
from connectors.identity import FileIdentity, check_file, check_settings
from connectors.kinds import NumberTexts, kind_of
from connectors.source import (
    DEFAULT_BATCH_SIZE,
    BaseSource,
    Batch,
    Event,
    Position,
    Reject,
    Snapshot,
    WeightedEvent,
)

# What every snapshot holds; those of older releases hold no "content".
_NEEDED = {"file", "row", "block", "offset", "seed", "settings", "vocabulary"}


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
        The column that says when an event happened (time or number of seconds). It is a feature
        only if `columns` lists it. None by default.
    weight
        The column of each example's weight, a number of at least 0; it is no feature. None, the
        default: all weigh 1.
    keep
        Columns of any type that batches have as they are, under `kept`, such as keys; features,
        too, only if `columns` lists them. None by default.
    parse_numbers
        Text columns that are read as numbers, or times in seconds since 1970 (ISO 8601; UTC unless
        they say otherwise), not one-hot; a row whose text is neither is set aside.
    max_categories
        Values of a text column that get a feature of their own, 1000 by default: see `Encoder`.
    filters
        The filter of the subclass, as text; a snapshot of a source with another filter is refused.

    Attributes
    ----------
    kinds : dict[str, str | None]
        The kind of each feature column (see `kind_of`); None for columns of lists.
    number_texts : NumberTexts
        Has the `names` of text columns whose first 1,000 rows hold numbers or times only.
    empty_columns : list[str]
        The feature columns without a value in the batches read so far.

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
    ) -> None:
        sizes = (("batch_size", batch_size, 1), ("shuffle_buffer", shuffle_buffer, 0))
        for parameter, value, least in (*sizes, ("seed", seed, 0)):
            if value is not None and operator.index(value) < least:
                raise ValueError(f"{parameter} must be at least {least}, not {value}")
        self._name, self._kind = name, type(self).__name__
        self._start = start
        self.target = target
        self.timestamp, self.weight = timestamp, weight
        self.batch_size = batch_size
        if missing := [column for column in keep if column not in schema.names]:
            raise MissingColumnError(missing[0], schema.names, name, self._role_of(missing[0]))
        self.keep = list(keep)
        others = keep if columns is None and not isinstance(exclude, str) else ()
        left_out = [*exclude, *others] if others else exclude
        self.features = feature_columns(schema, name, target, columns, timestamp, left_out, weight)
        self._used = {*self.features, *keep, target, timestamp, weight} - {None}
        chosen = with_numbers(schema, self.features, parse_numbers, name)
        self.kinds = {name: kind_of(chosen.field(name).type) for name in self.features}
        self._as_numbers = [
            n for n in self.features if chosen.field(n).type != schema.field(n).type
        ]
        self.number_texts = NumberTexts()
        self._target_type = target_type(schema, target)
        fields = pa.schema([chosen.field(column) for column in self.features])
        self._encoder = self._encoder_of(fields, max_categories)
        self.empty_columns = self._encoder.empty
        self._seed = None if seed is None else int(seed)
        self._cursor: Cursor
        if shuffle_buffer:
            drawn = int(np.random.SeedSequence().generate_state(1)[0])
            seed = drawn if self._seed is None else self._seed
            self._cursor = ShuffledCursor(self._read, start, shuffle_buffer, seed)
        else:
            self._cursor = Cursor(self._read, start)
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
        }

    _identity: FileIdentity | None = None
    """Of a source of one file: what it is, by its content."""

    @abstractmethod
    def _read(self, start: Position) -> Iterator[Chunk]:
        """Give the raw rows from a position on, as chunks of plain columns (see `plain_batch`)."""

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

    def _events(self) -> Iterator[Event]:
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
        self._check_content(snapshot.get("content"))  # None in older releases' snapshots
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
        """Return the timestamps of the next unread rows, as in `TimedSource`."""
        if self.timestamp is None:
            return None
        chunk = self._cursor.peek(limit)
        return np.empty(0) if chunk is None else self._numbers(chunk, self.timestamp)

    def __repr__(self) -> str:
        """Return the class, the name and the position of the source."""
        return f"<{type(self).__name__} {self._name!r} at {self._cursor.place.position}>"

    def _batches(self, size: int) -> Iterator[Batch]:
        cursor = self._cursor
        while (chunk := cursor.peek(size)) is not None:
            good, rejects = self._readable(chunk)
            self.number_texts.look(good.data, [n for n in self.kinds if n not in self._as_numbers])
            batch = Batch(
                features=self._encoder.encode(parsed(good.data, self._as_numbers)[0]),
                labels=self._labels(good),
                rows=good.rows,
                file=good.file,
                timestamps=self._numbers(good, self.timestamp),
                rejects=rejects,
                weights=self._numbers(good, self.weight),
                kept=good.data.select(self.keep) if self.keep else None,
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
        found = [
            ("no number", i, why) for i, why in parsed(chunk.data, self._as_numbers)[1].items()
        ]
        found += [("not UTF-8", i, why) for i, why in texts_not_utf8(chunk.data).items()]
        at = {i: Position(chunk.file, int(chunk.rows[i])) for _, i, _ in found}
        return {i: Reject(at[i], kind, why, shown_row(chunk.data, i)) for kind, i, why in found}

    def _decoded(self, chunk: Chunk) -> Iterator[Event]:
        if faults := self._faults(chunk):
            first = min(faults)
            yield from self._decoded(chunk.slice(0, first))
            raise NotReadableError(
                f"{faults[first].position}: {faults[first].reason}; convert it, leave the column "
                "out with columns=, or read batches, which set such rows aside"
            )
        labels, rows = self._labels(chunk).to_pylist(), chunk.rows.tolist()
        data, weights = parsed(chunk.data, self._as_numbers)[0], self._numbers(chunk, self.weight)
        events: Iterator[dict[Any, float]] = self._encoder.events(data)
        for i, (x, y, row) in enumerate(zip(events, labels, rows, strict=True)):
            event = Event(x, y, Position(chunk.file, row))
            yield event if weights is None else WeightedEvent.of(event, float(weights[i]))

    def _labels(self, chunk: Chunk) -> pa.Array:
        at = -1 if self.target is None else chunk.data.schema.get_field_index(self.target)
        if at < 0:
            return pa.nulls(chunk.num_rows, self._target_type)
        return chunk.data.column(at)

    def _numbers(self, chunk: Chunk, name: str | None) -> npt.NDArray[np.float64] | None:
        """Return a column of times or numbers, NaN = missing; None if there is no such column."""
        return None if name is None else column_of_numbers(chunk.data, name)
