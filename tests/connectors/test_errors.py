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


def test_missing_column_suggests_the_nearest_name_and_lists_all():
    error = errors.MissingColumnError("lable", ["age", "label"], "adult.parquet", "target")
    assert str(error) == (
        "target `lable` is not a column of `adult.parquet`; did you mean `label`? "
        "(columns: `age`, `label`)"
    )


def test_missing_column_without_a_near_name_gives_no_hint():
    error = errors.MissingColumnError("zzz", ["age"], "a.parquet", "target")
    assert str(error) == "target `zzz` is not a column of `a.parquet` (columns: `age`)"


def test_of_many_columns_the_first_are_listed():
    error = str(
        errors.MissingColumnError("zzz", [f"c{i}" for i in range(1000)], "a.csv", "columns")
    )
    assert error.startswith("feature `zzz` is not a column of `a.csv` (columns: `c0`, `c1`, ")
    assert error.endswith("`c29`, and 970 more)")


def test_missing_column_survives_pickling():
    error = errors.MissingColumnError("lable", ["label"], "a.parquet", "target")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
