"""Files are read as the model learnt them, what is odd is said, and nothing steers the terminal."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

CODES = ["A1", "007", "12", "true"]


@pytest.fixture
def learn(report):
    """Learn which codes are which, from a CSV file, with labels 007 and 7."""
    rows = [f"{i:05d},{CODES[i % 4]},{i % 9}.5,{'007' if i % 2 else '7'}" for i in range(1200)]
    Path("train.csv").write_text("id,code,n,y\n" + "\n".join(rows) + "\n")
    given = ["train.csv", "--exclude", "id", "--learner", "sgd", "--save", "m.svm"]
    return lambda *options: report(*given, *options)


@pytest.mark.parametrize(
    ("code", "label"),
    [("007", "007"), ("12", "7"), ("true", "007")],
    ids=["zeros", "digits", "bool"],
)
def test_a_row_is_predicted_as_learnt_whatever_its_codes_are(code, label, learn, report, predict):
    learn()
    odd = ["0001", "+1", "9223372036854775809", "1e5", "0x1F", "2024-01-02", "NA", "1.0"]
    Path("new.csv").write_text("id,code,n,y\n" + "".join(f"{i},{code},1,{label}\n" for i in odd))
    lines = [json.dumps({"id": i, "code": 12 if code == "12" else code, "n": 1}) for i in odd]
    Path("new.jsonl").write_text("\n".join(lines))
    for name in ("new.csv", "new.jsonl"):
        predict("m.svm", name, "-o", "out.csv", "--keep", "id")
        with open("out.csv") as file:
            found = list(csv.DictReader(file))
        assert [row["id"] for row in found] == odd
        assert {row["prediction"] for row in found} == {label}
    assert "0.00% of 8 examples" in predict("m.svm", "new.csv", "--target", "y").out
    # A model that goes on learning, and the file of a test, are read so, too.
    goes_on = ["train.csv", "--model", "m.svm", "--exclude", "id", "--test", "new.csv"]
    for found in (report(*goes_on), learn("--test", "new.csv")):
        assert (found["test_rows"], found["test_error"]) == (8, 0.0)


def test_tokens_commas_and_units_are_said_at_the_start_and_in_the_advice(replay):
    rows = [
        f'{"?" if i % 40 == 0 else i % 50},"{i % 50},5",{i} kg,Mr {i},{i % 2}' for i in range(400)
    ]
    Path("odd.csv").write_text("a,b,w,name,y\n" + "\n".join(rows) + "\n")
    command = ["odd.csv", "--learner", "sgd"]
    out, err = replay(*command)
    for words in ("--missing-tokens '?'", "'0,5', look like", "'0 kg', look like", "'Mr 0'"):
        assert words in err and words in out
    out, err = replay(*command, "--decimal", ",", "--missing-tokens", "?", "--exclude", "w,name")
    assert "categories" not in out + err and "missing values        9: a 9" in out


def test_nothing_in_the_data_steers_the_terminal_or_the_page(replay, predict):
    odd = "\x1b[2J\u202ea\nb\x07"
    n = 1200
    pq.write_table(
        pa.table(
            {
                f"f{odd}": [f"{i % 3}{odd}" for i in range(n)],
                f"g{odd}": [f"{i}" for i in range(n)],
                f"e{odd}": pa.nulls(n, pa.float64()),
                "y": [f"{i % 3 == 0}{odd}" for i in range(n)],
            }
        ),
        f"d{odd}.parquet",
    )
    file = f"d{odd}.parquet"
    said = replay(file, "--learner", "sgd", "--report", "r", "--save", "m.svm")
    said += predict("m.svm", file, "--target", "y")
    said += predict("m.svm", file, "--target", f"z{odd}", code=1)
    said += replay(file, "--target", f"g{odd}", code=1)
    said += replay(f"--o{odd}", code=2)
    found = "".join(said) + Path("r/index.html").read_text()
    assert "\\x1b[2J\\u202ea\\nb\\x07" in found
    assert {c for c in found if not c.isprintable()} == {"\n"}


def test_labels_that_are_decimals_can_be_saved(report):
    labels = pa.array(["10.00", "11.50"] * 20).cast(pa.decimal128(12, 2))
    pq.write_table(pa.table({"a": range(40), "y": labels}), "decimals.parquet")
    found = report("decimals.parquet", "--learner", "sgd", "--save", "m.svm")
    assert found["labels"] == {"10.0": 20, "11.5": 20}


def test_a_test_file_may_lack_what_is_left_out(replay):
    for name in ("1", "2"):
        Path(f"rows/k={name}").mkdir(parents=True)
        table = pa.table({"a": range(40), "y": ["u", "v"] * 20})
        pq.write_table(table, f"rows/k={name}/f.parquet")
    pq.write_table(table, "test.parquet")
    out = replay("rows", "--exclude", "k", "--test", "test.parquet", "--learner", "sgd").out
    assert "of 40 examples of test.parquet" in out


@pytest.mark.slow
def test_a_refused_csv_file_ends_with_the_code_of_an_error():
    Path("rows.csv").write_text("a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(400_000)))
    command = [sys.executable, "-m", "streamsvm", "replay", "rows.csv", "--target", "nope"]
    for _ in range(20):
        assert subprocess.run(command, capture_output=True).returncode == 1


def test_rows_that_cannot_be_read_keep_what_is_to_be_kept(replay, predict):
    # A sentence names the first of them; a column of which nothing was read is not called empty.
    lines = [f"{i:06d},{i % 50}.5,{int(i % 50 > 25)}" for i in range(200)]
    Path("train.csv").write_text("\n".join(["id,age,label", *lines]) + "\n")
    given = ["train.csv", "--target", "label", "--exclude", "id", "--learner", "sgd"]
    replay(*given, "--save", "m.svm")
    Path("rows.csv").write_text('id,age\n007,"51,5"\n0010,abc\n')
    said = predict("m.svm", "rows.csv", "-o", "o.parquet", "--keep", "id").err
    assert "the first row that cannot be read: rows.csv: row 0" in said and "51,5" in said
    assert "without any value" not in said
    table = pq.read_table("o.parquet")
    assert table["id"].to_pylist() == ["007", "0010"] and table["row"].to_pylist() == [0, 1]
    assert table["prediction"].to_pylist() == [None, None]
