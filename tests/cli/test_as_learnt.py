"""Files are read as the model learnt them, what is odd is said, and nothing steers the terminal."""

import csv
import json
import subprocess
import sys
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamsvm.cli.main import main

CODES = ["A1", "007", "12", "true"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def learnt(*options):
    """Learn which codes are which, from a CSV file, with labels 007 and 7."""
    rows = [f"{i:05d},{CODES[i % 4]},{i % 9}.5,{'007' if i % 2 else '7'}" for i in range(1200)]
    Path("train.csv").write_text("id,code,n,y\n" + "\n".join(rows) + "\n")
    command = ["replay", "train.csv", "--target", "y", "--exclude", "id", "--learner", "sgd"]
    assert main([*command, "--save", "m.svm", "--quiet", *options]) == 0


@pytest.mark.parametrize(
    ("code", "label"),
    [("007", "007"), ("12", "7"), ("true", "007")],
    ids=["zeros", "digits", "bool"],
)
def test_a_row_is_predicted_as_learnt_whatever_its_codes_look_like(code, label, capsys):
    learnt()
    odd = ["0001", "+1", "9223372036854775809", "1e5", "0x1F", "2024-01-02", "NA", "1.0"]
    Path("new.csv").write_text("id,code,n,y\n" + "".join(f"{i},{code},1,{label}\n" for i in odd))
    lines = [json.dumps({"id": i, "code": 12 if code == "12" else code, "n": 1}) for i in odd]
    Path("new.jsonl").write_text("\n".join(lines))
    for name in ("new.csv", "new.jsonl"):
        assert main(["predict", "m.svm", name, "-o", "out.csv", "--keep", "id"]) == 0
        with open("out.csv") as file:
            found = list(csv.DictReader(file))
        assert [row["id"] for row in found] == odd
        assert {row["prediction"] for row in found} == {label}
    capsys.readouterr()
    assert main(["predict", "m.svm", "new.csv", "--target", "y"]) == 0
    assert "0.00% of 8 examples" in capsys.readouterr().out
    # A model that goes on learning, and the file of a test, are read so, too.
    command = ["replay", "new.csv", "--target", "y", "--model", "m.svm", "--json", "--quiet"]
    main([*command, "--exclude", "id", "--test", "train.csv"])
    learnt("--test", "new.csv")
    assert "0.00% of 8 examples" in capsys.readouterr().out


def test_tokens_commas_and_units_are_said_at_the_start_and_in_the_advice(capsys):
    rows = [
        f'{"?" if i % 40 == 0 else i % 50},"{i % 50},5",{i} kg,Mr {i},{i % 2}' for i in range(400)
    ]
    Path("odd.csv").write_text("a,b,w,name,y\n" + "\n".join(rows) + "\n")
    command = ["replay", "odd.csv", "--target", "y", "--learner", "sgd"]
    assert main(command) == 0
    out, err = capsys.readouterr()
    for words in ("--missing-tokens '?'", "'0,5', look like", "'0 kg', look like", "'Mr 0'"):
        assert words in err and words in out
    assert main([*command, "--decimal", ",", "--missing-tokens", "?", "--exclude", "w,name"]) == 0
    out, err = capsys.readouterr()
    assert "categories" not in out + err and "missing values        9: a 9" in out


def test_nothing_in_the_data_steers_the_terminal_or_the_page(capsys):
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
    command = ["replay", f"d{odd}.parquet", "--target", "y", "--learner", "sgd", "--report", "r"]
    assert main([*command, "--save", "m.svm"]) == 0
    assert main(["predict", "m.svm", f"d{odd}.parquet", "--target", "y"]) == 0
    assert main(["predict", "m.svm", f"d{odd}.parquet", "--target", f"z{odd}"]) == 1
    assert main(["replay", f"d{odd}.parquet", "--target", f"g{odd}"]) == 1
    with pytest.raises(SystemExit):
        main(["replay", f"--o{odd}"])
    found = "".join(capsys.readouterr()) + Path("r/index.html").read_text()
    assert "\\x1b[2J\\u202ea\\nb\\x07" in found
    assert {c for c in found if not c.isprintable()} == {"\n"}


def test_what_cannot_be_saved_is_refused_before_it_is_learnt(capsys):
    table = pa.table({"a": range(40), "y": [date(2024, 1, 1 + i % 2) for i in range(40)]})
    pq.write_table(table, "dates.parquet")
    for option in ("--save", "--checkpoint"):
        assert main(["replay", "dates.parquet", "--target", "y", option, "m"]) == 1
        assert "of type date cannot be saved" in capsys.readouterr().err
    labels = pa.array(["10.00", "11.50"] * 20).cast(pa.decimal128(12, 2))
    pq.write_table(table.set_column(1, "y", labels), "decimals.parquet")
    command = ["replay", "decimals.parquet", "--target", "y", "--learner", "sgd", "--save", "m.svm"]
    assert main([*command, "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == {"10.0": 20, "11.5": 20}


def test_a_test_file_may_lack_what_is_left_out(capsys):
    for name in ("1", "2"):
        Path(f"rows/k={name}").mkdir(parents=True)
        table = pa.table({"a": range(40), "y": ["u", "v"] * 20})
        pq.write_table(table, f"rows/k={name}/f.parquet")
    pq.write_table(table, "test.parquet")
    command = ["replay", "rows", "--target", "y", "--exclude", "k", "--test", "test.parquet"]
    assert main([*command, "--learner", "sgd", "--quiet"]) == 0
    assert "of 40 examples of test.parquet" in capsys.readouterr().out


@pytest.mark.slow
def test_a_refused_csv_file_ends_with_the_code_of_an_error():
    Path("rows.csv").write_text("a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(400_000)))
    command = [sys.executable, "-m", "streamsvm", "replay", "rows.csv", "--target", "nope"]
    for _ in range(20):
        assert subprocess.run(command, capture_output=True).returncode == 1


def test_rows_that_cannot_be_read_keep_what_is_to_be_kept(capsys):
    # A sentence names the first of them; a column of which nothing was read is not called empty.
    lines = [f"{i:06d},{i % 50}.5,{int(i % 50 > 25)}" for i in range(200)]
    Path("train.csv").write_text("\n".join(["id,age,label", *lines]) + "\n")
    assert (
        main(
            [
                "replay",
                "train.csv",
                "--target",
                "label",
                "--exclude",
                "id",
                "--learner",
                "sgd",
                "--save",
                "m.svm",
            ]
        )
        == 0
    )
    Path("rows.csv").write_text('id,age\n007,"51,5"\n0010,abc\n')
    capsys.readouterr()
    assert main(["predict", "m.svm", "rows.csv", "-o", "o.parquet", "--keep", "id"]) == 0
    said = capsys.readouterr().err
    assert "the first row that cannot be read: rows.csv: row 0" in said and "51,5" in said
    assert "without any value" not in said
    table = pq.read_table("o.parquet")
    assert table["id"].to_pylist() == ["007", "0010"] and table["row"].to_pylist() == [0, 1]
    assert table["prediction"].to_pylist() == [None, None]
