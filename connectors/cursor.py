"""A cursor over a stream of raw rows: it looks ahead, takes rows, knows the next unread one."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.batch import Position
from connectors.errors import SnapshotError


class Chunk(NamedTuple):
    """Raw rows of one file, in stream order, with their row numbers in that file."""

    data: pa.RecordBatch
    rows: npt.NDArray[np.int64]
    file: str | None

    @property
    def num_rows(self) -> int:
        """The number of rows (right even if the file has none of the columns)."""
        return len(self.rows)

    def slice(self, offset: int, length: int | None = None) -> "Chunk":
        """Return a part of the chunk, without copying."""
        end = self.num_rows if length is None else min(self.num_rows, offset + length)
        return Chunk(self.data.slice(offset, end - offset), self.rows[offset:end], self.file)

    def take(self, order: npt.NDArray[np.int64]) -> "Chunk":
        """Return some rows, in the order given."""
        return Chunk(self.data.take(pa.array(order)), self.rows[order], self.file)


class Place(NamedTuple):
    """The next unread row.

    Without shuffling it is at `position`. With shuffling it is the one at `offset` in the shuffled
    block whose first row is at `position`; `block` is the number of that block from the start of
    the stream, which is part of the block's seed.
    """

    position: Position
    block: int = 0
    offset: int = 0


# Returns the chunks of a stream, in order, from a position on.
Reader = Callable[[Position], Iterator[Chunk]]


class Cursor:
    """Rows in stream order, in pieces of any size, from what `read` yields.

    `version` changes whenever the next unread row does: by it an iterator notices that another one,
    or a resume, has moved the cursor.
    """

    seed: Any = None  # of shuffled blocks, a whole number

    def __init__(self, read: Reader, start: Position) -> None:
        self._read = read
        self.version = 0
        self.move(Place(start))

    @property
    def place(self) -> Place:
        """The place of the next unread row."""
        if self._front is None or self._offset == 0:
            return self._place
        return Place(Position(self._front.file, int(self._front.rows[self._offset - 1]) + 1))

    def move(self, place: Place) -> None:
        """Continue at another place; the stream is reopened there at the next `peek`."""
        self._place = place
        self._front: Chunk | None = None
        self._offset = 0
        self._rest: Chunk | None = None
        self._chunks: Iterator[Chunk] | None = None
        self.version += 1

    def peek(self, size: int) -> Chunk | None:
        """Return at most `size` rows of one file, leaving them unread; None at the end."""
        front = self._front
        unread = 0 if front is None else front.num_rows - self._offset
        if front is None or unread < size:
            pieces = [front.slice(self._offset)] if front is not None and unread else []
            pieces += self._gather(size - unread, pieces[0].file if pieces else None)
            # Peeking again finds these rows in memory.
            self._place, self._front, self._offset = self.place, _joined(pieces), 0
        return None if self._front is None else self._front.slice(self._offset, size)

    def advance(self, count: int) -> None:
        """Mark so many of the rows that `peek` returned as read."""
        self._offset += count
        self.version += 1

    def _gather(self, size: int, file: str | None = None) -> list[Chunk]:
        """Take the next raw chunks, up to `size` rows of one file (`file`, if not None)."""
        pieces: list[Chunk] = []
        while size > 0 and (chunk := self._next_chunk()) is not None:
            file = chunk.file if file is None else file
            if chunk.file != file:
                self._rest = chunk
                break
            piece = chunk.slice(0, size)
            if piece.num_rows < chunk.num_rows:
                self._rest = chunk.slice(size)
            size -= piece.num_rows
            pieces.append(piece)
        return pieces

    def _next_chunk(self) -> Chunk | None:
        if self._rest is not None:
            chunk, self._rest = self._rest, None
            return chunk
        try:
            if self._chunks is None:
                self._chunks = self._read(self._place.position)
            return next((chunk for chunk in self._chunks if chunk.num_rows), None)
        except BaseException:
            # A generator that raised yields no more: reopen at the next unread row.
            self.move(self.place)
            raise


class ShuffledCursor(Cursor):
    """Rows shuffled within blocks of `size` rows of one file, which are held in memory.

    The permutation of a block is drawn from (seed, number of the block), so that any block can be
    read again without those before it.
    """

    def __init__(self, read: Reader, start: Position, size: int, seed: int) -> None:
        self._size = size
        self.seed = seed
        super().__init__(read, start)

    @property
    def place(self) -> Place:
        """The place of the next unread row."""
        if self._front is None:
            return self._place
        if self._offset == self._front.num_rows:
            return Place(self._end, self._place.block + 1)
        return Place(self._place.position, self._place.block, self._offset)

    def peek(self, size: int) -> Chunk | None:
        """Return at most `size` rows of one block, leaving them unread; None at the end."""
        if self._front is None or self._offset == self._front.num_rows:
            place = self.place
            block = _joined(self._gather(self._size))
            if place.offset > (0 if block is None else block.num_rows):
                raise SnapshotError(
                    f"the snapshot continues in a shuffled block of {self._size} rows from "
                    f"{place.position}, which has fewer rows now: the data have changed"
                )
            self._place, self._front, self._offset = place, None, place.offset
            if block is not None:
                rng = np.random.default_rng((self.seed, place.block))
                self._end = Position(block.file, int(block.rows[-1]) + 1)
                self._front = block.take(rng.permutation(block.num_rows))
        return None if self._front is None else self._front.slice(self._offset, size)


def _joined(chunks: list[Chunk]) -> Chunk | None:
    if len(chunks) < 2:
        return chunks[0] if chunks else None
    data = pa.concat_batches([chunk.data for chunk in chunks])
    return Chunk(data, np.concatenate([chunk.rows for chunk in chunks]), chunks[0].file)
