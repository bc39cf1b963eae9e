"""CSV and JSON lines: types by the first rows, bad rows set aside, and continued anywhere."""

import gzip
import json

import pyarrow as pa
import pytest

from connectors import CSVSource, JSONLinesSource, SnapshotError

N = 12_000
BAD = {10_500: "a text", 11_000: "too few", 11_998: "too many", 11_999: "no label"}


def text_of(kind):
    rows = [
        {"a": i % 7, "b": i / 4, "t": "xyz"[i % 3], "day": "2024-01-02", "y": i % 2}
        for i in range(N)
    ]
    if kind == "jsonl":
        lines = [json.dumps(row) for row in rows]
        lines[10_500] = '{"a": "much", "y": 1}'
        lines[11_000], lines[11_998], lines[11_999] = "{nope", "[1]", '{"y": 1}{"y": 2}'
        return "\n".join(lines)
    lines = [";".join(map(str, row.values())) for row in rows]
    lines[10_500] = "much;1;x;2024-01-02;1"
    lines[11_000], lines[11_998], lines[11_999] = "1;2", "1;2;3;4;5;6", "1;1;x;2024-01-02;2.5"
    return "a;b;t;day;y\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "jsonl.gz"])
def test_bad_rows_are_set_aside_and_reading_continues_anywhere(tmp_path, ending):
    path, make = tmp_path / f"rows.{ending}", JSONLinesSource if "json" in ending else CSVSource
    content = text_of(ending.partition(".")[0]).encode()
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    source = make(path, "y")
    assert source.kinds == {"a": "number", "b": "number", "t": "text", "day": "time"}
    batches = list(source.batches(5000))
    rejects = [reject for batch in batches for reject in batch.rejects]
    assert [reject.position.row for reject in rejects] == list(BAD)
    assert all(reject.reason and reject.payload for reject in rejects)
    rows = [row for batch in batches for row in batch.rows.tolist()]
    assert rows == [row for row in range(N) if row not in BAD]
    assert batches[0].labels.type == pa.int64()
    events = [(x, y) for batch in batches for x, y, _ in batch.events()]
    assert events[5] == ({"a": 5.0, "b": 1.25, "t=z": 1.0, "day": 1704153600.0}, 1)
    source.rewind()
    next(source.batches(10_400))
    other = make(path, "y")
    other.resume(json.loads(json.dumps(source.snapshot())))
    assert next(other.batches(50)).features.equals(next(source.batches(50)).features)
    content = content[:-9] + b"\n"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    with pytest.raises(SnapshotError, match="is not the file"):
        make(path, "y").resume(source.snapshot())


def test_what_is_missing_and_what_stays_text(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('id,n,t,y\n007, 1 ,"a, b",yes\nx8,,NA,no\n,nan,,yes\n')
    source = CSVSource(path, "y", keep=["id"], exclude=["id"])
    batch = next(source.batches())
    assert batch.kept.to_pydict() == {"id": ["007", "x8", None]}
    assert batch.features.to_pydict() == {"n": [1.0, None, None], "t=a, b": [1.0, 0.0, 0.0]}


def test_fields_that_come_after_the_first_lines_are_counted(tmp_path, caplog):
    path = tmp_path / "rows.jsonl"
    rows = [{"a": i, "b": "x", "y": i % 2} for i in range(N)]
    rows[10_700] |= {"b": 3}  # a fault in a field that is not used
    rows[10_800:10_900] = [row | {"new": {"c": 1}, "other": i} for i, row in enumerate(rows[:100])]
    path.write_text("\n".join(map(json.dumps, rows)))
    with JSONLinesSource(path, "y", columns=["a"]) as source:
        assert sum(map(len, source.batches())) == N
        assert source.counts == {"new_fields": 100}
    assert [record.getMessage() for record in caplog.records] == [
        "`rows.jsonl`: row 10800 has the field `new`, which the first 10000 rows did not have: "
        "such fields are ignored, and counted"
    ]
