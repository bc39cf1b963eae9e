"""The exception tree."""

import pickle

import pytest

from connectors import errors


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.SourceNotFoundError, FileNotFoundError),
        (errors.MissingColumnError, KeyError),
        (errors.SnapshotError, ValueError),
    ],
)
def test_errors_can_be_caught_as_the_builtin_that_a_user_would_expect(kind, builtin):
    assert issubclass(kind, builtin)
    assert issubclass(kind, errors.SourceError)


def test_every_error_is_a_source_error_and_stands_in_the_tree():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    for kind in (kind for kind in kinds if issubclass(kind, Exception)):
        assert issubclass(kind, errors.SourceError)
        assert kind.__name__ in errors.__doc__


@pytest.mark.parametrize(
    ("name", "columns", "said"),
    [
        ("lable", ["age", "label"], "; did you mean `label`? (columns: `age`, `label`)"),
        ("zzz", ["age"], " (columns: `age`)"),
        (
            "zzz",
            [f"c{i}" for i in range(1000)],
            f" (columns: {', '.join(f'`c{i}`' for i in range(30))}, and 970 more)",
        ),
    ],
    ids=["near", "none near", "many"],
)
def test_a_missing_column_suggests_the_nearest_name_and_lists_the_first(name, columns, said):
    error = errors.MissingColumnError(name, columns, "a.parquet", "columns")
    assert str(error) == f"feature `{name}` is not a column of `a.parquet`{said}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert (error.role, error.columns) == ("columns", tuple(columns))
