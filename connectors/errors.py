"""What can go wrong with a source.

The tree (every error of this package is a ``SourceError``):

    SourceError
    +-- SourceNotFoundError    no such file or folder            (also a FileNotFoundError)
    +-- NotReadableError       foreign, truncated or empty file; unsupported column type
    +-- MissingColumnError     a column that the data lack       (also a KeyError)
    +-- NoFeaturesError        no column that could be a feature
    +-- SchemaChangedError     a column changes type between files
    +-- SourceChangedError     a file is not the one that it was
    +-- SnapshotError          a snapshot of another source      (also a ValueError)
    +-- SourceAborted          asked for by a test, with MemorySource.ABORT

Parameters out of range (a negative rate, say) are plain ``ValueError``.
"""

import difflib
from collections.abc import Sequence

_MOST_LISTED = 30
"""Of more columns, only the first are listed."""


class SourceError(Exception):
    """Base of every error of a source."""


class SourceNotFoundError(SourceError, FileNotFoundError):
    """No such file or folder."""


class NotReadableError(SourceError):
    """The file or one of its columns cannot be read as events."""


class MissingColumnError(SourceError, KeyError):
    """A column was asked for that the data do not have.

    Parameters
    ----------
    column
        The name asked for.
    columns
        The names that exist, listed in the message.
    name
        The source, as the user knows it.
    role
        What the column was asked for: ``"target"``, ``"timestamp"``, ``"columns"``, ...

    Examples
    --------
    >>> print(MissingColumnError("lable", ["age", "label"], "adult.parquet", "target"))
    target `lable` is not a column of `adult.parquet`; did you mean `label`? (columns: `age`, \
`label`)

    """

    def __init__(self, column: str, columns: Sequence[str], name: str, role: str) -> None:
        # BaseException gets the very arguments, so that the error survives pickling.
        super().__init__(column, columns, name, role)
        self.column = column
        self.columns = tuple(columns)
        self.name = name
        self.role = role

    def __str__(self) -> str:
        """Say it in words; KeyError would print the repr of its first argument."""
        close = difflib.get_close_matches(self.column, self.columns, n=1)
        hint = f"; did you mean `{close[0]}`?" if close else ""
        existing = ", ".join(f"`{column}`" for column in self.columns[:_MOST_LISTED])
        if more := len(self.columns[_MOST_LISTED:]):
            existing += f", and {more:,} more"
        # Of a list of names, one of them.
        role = {"columns": "feature", "keep": "column to keep"}.get(self.role, self.role)
        return (
            f"{role} `{self.column}` is not a column of `{self.name}`{hint} (columns: {existing})"
        )


class NoFeaturesError(SourceError):
    """None of the columns can be a feature."""


class SchemaChangedError(SourceError):
    """A column has another kind of value in another file of the same source."""


class SourceChangedError(SourceError):
    """A file has changed since it was looked at first."""


class SnapshotError(SourceError, ValueError):
    """A snapshot that does not belong to this source."""


class SourceAborted(SourceError):
    """A `MemorySource` met its ABORT mark."""
