"""What is passed on is as it is written; types are those asked for; wide and long files."""

import json
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors import CSVSource, JSONLinesSource, NotReadableError, ParquetSource

ODD = ["007", "7", "+7", "9223372036854775808", "9223372036854775809", "1e5", "0x1F", "2024-01-02"]
ODD += ["10:00", "true", "True", "1.0", "1.50", "NA", " x "]


def test_columns_to_keep_are_the_texts_of_a_csv_file(tmp_path):
    path = tmp_path / "rows.csv"
    # Also where the column is a feature, or the target, of another type.
    path.write_text("a,id,y\n" + "".join(f"1,{text},1\n" for text in [*ODD, ""]))
    for options in ({}, {"columns": ["id"]}):
        batch = next(CSVSource(path, "y", keep=["id"], **options).batches())
        assert batch.kept.column("id").to_pylist() == [*ODD, None]
    path.write_text("id,a\n007,1\n010,0\n")
    batch = next(CSVSource(path, "id", keep=["id"]).batches())
    assert batch.kept.to_pydict() == {"id": ["007", "010"]}


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["0", "1", "-7"], [0, 1, -7]),
        (["1", "01"], ["1", "01"]),
        (["1", "+1"], ["1", "+1"]),
        (["1", "1.0"], ["1", "1.0"]),
        (["1.0", "0.0"], [1.0, 0.0]),
        (["1.50", "1.5"], ["1.50", "1.5"]),
        (["true", "false"], [True, False]),
        (["true", "TRUE"], ["true", "TRUE"]),
        (["9223372036854775808", "9223372036854775809"],) * 2,
        (["0.12345678901234567", "0.12345678901234568"],) * 2,
        (["0x10", "16"],) * 2,
        (["2024-01-01", "2024-01-02"],) * 2,
        (["1e1", "10"],) * 2,
    ],
    ids=str,
)
def test_labels_that_differ_as_texts_never_become_one(tmp_path, texts, labels):
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n" + "".join(f"1,{text}\n" for text in texts))
    found = next(CSVSource(path, "y").batches()).labels.to_pylist()
    assert found == labels and list(map(type, found)) == list(map(type, labels))


def test_a_label_of_another_form_is_set_aside(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n" + "1,7\n" * 10_001 + "1,007\n")
    *_, last = CSVSource(path, "y").batches()
    assert [reject.reason[:18] for reject in last.rejects] == ["column `y` is '007"]


def test_labels_and_kept_values_of_json_lines(tmp_path):
    path = tmp_path / "rows.jsonl"
    ids = ['"007"', "7", "1.10", "1e5", "18446744073709551617", "true", '"2024-01-02"', "null"]
    lines = [
        f'{{"a": 1, "id": {t}, "y": {2**53 + i % 2}, "z": {2**70 + i}}}' for i, t in enumerate(ids)
    ]
    path.write_text("\n".join(lines))
    batch = next(JSONLinesSource(path, "y", keep=["id"], exclude=["z"]).batches())
    kept = ["007", "7", "1.10", "1e5", "18446744073709551617", "true", "2024-01-02", None]
    assert batch.kept.to_pydict() == {"id": kept}
    assert batch.labels.to_pylist() == [2**53 + i % 2 for i in range(8)]
    large = next(JSONLinesSource(path, "z", keep=["z"], columns=["a"]).batches())
    assert large.labels.to_pylist() == [str(2**70 + i) for i in range(8)]
    assert large.kept.column("z").to_pylist() == large.labels.to_pylist()


def test_values_in_the_names_of_folders(tmp_path):
    for name in ("007", "12"):
        (tmp_path / f"k={name}").mkdir()
        pq.write_table(pa.table({"a": [1.0]}), tmp_path / f"k={name}" / "f.parquet")
    batches = list(ParquetSource(tmp_path, "k", keep=["k"], columns=["a"]).batches())
    assert [b.labels.to_pylist() + b.kept.column("k").to_pylist() for b in batches] == [
        ["007", "007"],
        ["12", "12"],
    ]
    assert ParquetSource(tmp_path, None).kinds == {"a": "number", "k": "number"}
    text = next(ParquetSource(tmp_path, None, as_text=["k"]).batches())
    assert text.features.schema.names == ["a", "k=007"]


def test_a_run_goes_on_with_the_types_it_had_though_new_folders_have_others(tmp_path):
    def add(name):
        (tmp_path / f"k={name}").mkdir()
        pq.write_table(pa.table({"a": [1.0]}), tmp_path / f"k={name}" / "f.parquet")

    add("1")
    source = ParquetSource(tmp_path, None)
    next(source.batches())
    add("x7")
    later = ParquetSource(tmp_path, None)
    assert later.kinds["k"] == "text"
    later.resume(json.loads(json.dumps(source.snapshot())))
    batch = next(later.batches())
    assert not len(batch) and "`k` is 'x7'" in batch.rejects[0].reason


def test_columns_are_read_as_texts_if_a_model_knows_them_so(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("code,flag,y\n012,true,7\n7,false,8\n")
    source = CSVSource(path, "y", as_text=["code", "flag"], label_kind="text")
    batch = next(source.batches())
    assert batch.features.schema.names == ["code=012", "flag=true", "code=7", "flag=false"]
    assert batch.labels.to_pylist() == ["7", "8"]
    path = tmp_path / "rows.jsonl"
    path.write_text('{"code": 12, "y": 7}\n{"code": "012", "y": 8}\n')
    batch = next(JSONLinesSource(path, "y", as_text=["code"], label_kind="text").batches())
    assert batch.features.schema.names == ["code=12", "code=012"]
    assert batch.labels.to_pylist() == ["7", "8"]


def test_decimal_commas_and_tokens_for_missing_values(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a;b;t;y\n1.234,5;?;x;1\n-,5;2;?;0\n ? ;-;y;?\n")
    options = {"decimal": ",", "missing_tokens": ["?", "-"], "keep": ["b"]}
    source = CSVSource(path, "y", columns=["a", "b", "t"], **options)
    batch = next(source.batches())
    assert batch.features.to_pydict() == {
        "a": [1234.5, -0.5, None],
        "t=x": [1.0, 0.0, 0.0],
        "b": [None, 2.0, None],
        "t=y": [0.0, 0.0, 1.0],
    }
    assert batch.labels.to_pylist() == [1, 0, None]
    assert batch.kept.to_pydict() == {"b": ["?", "2", "-"]}
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": "?", "y": 1}\n{"a": 2, "y": 0}\n')
    source = JSONLinesSource(path, "y", missing_tokens=["?"], keep=["a"], columns=["a"])
    batch = next(source.batches())
    assert batch.features.to_pydict() == {"a": [None, 2.0]}
    assert batch.kept.to_pydict() == {"a": ["?", "2"]} and not batch.rejects
    table = pa.table({"a": ["1,5", "?"], "y": ["u", "v"]})
    pq.write_table(table, tmp_path / "rows.parquet")
    options = {"parse_numbers": ["a"], "decimal": ",", "missing_tokens": ["?"]}
    batch = next(ParquetSource(tmp_path / "rows.parquet", "y", **options).batches())
    assert batch.features.to_pydict() == {"a": [1.5, None]}


def test_what_is_read_of_a_file_of_many_columns_takes_time_by_their_number(tmp_path):
    def seconds(d):
        path = tmp_path / f"{d}.csv"
        names = [f"c{i}" for i in range(d)]
        row = ",".join(["1.5"] * d)
        path.write_text(f"{','.join(names)},y\n{row},0\n{row},1\n")
        pq.write_table(
            pa.table({name: [1.5] for name in names} | {"y": [0]}), tmp_path / "w.parquet"
        )
        start = time.process_time()
        for source in (CSVSource(path, "y"), ParquetSource(tmp_path / "w.parquet", "y")):
            assert next(source.batches()).features.num_columns == d
        return time.process_time() - start

    seconds(100)
    assert seconds(8000) < 30 * seconds(1000)  # quadratic: 64 times


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,y\n1,0\n" + "x" * (1 << 21) + ",1\n", "a row of more than 1,048,576 bytes"),
        ("x" * ((1 << 26) + 10), "the first line of"),
    ],
    ids=["row", "first line"],
)
def test_lines_without_end_are_refused_in_words(tmp_path, content, words):
    path = tmp_path / "rows.csv"
    path.write_text(content)
    with pytest.raises(NotReadableError, match=words):
        list(CSVSource(path, "y").batches())
