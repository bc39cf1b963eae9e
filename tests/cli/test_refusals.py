"""What a command refuses: one line that says what to do, one exit code, and no file touched."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamsvm
from streamsvm.cli import running
from tests.cli.conftest import columns, write

REPLAY = "replay --target y --quiet "

DATA = [
    ("absent.csv", "`absent.csv` does not exist"),
    ("absent.csv", ".jsonl"),
    ("hello.parquet", "is not a Parquet file"),
    ("rows.txt", "names of other formats end in"),
    ("cut.parquet", "is truncated"),
    ("blank.parquet", "is empty"),
    ("none.parquet", "no rows"),
    ("one.parquet", "one value only (True)"),
    ("bare.parquet", "no column can be a feature"),
    ("nested.parquet", "leave it out with exclude= (--exclude)"),
    ("changing", "column `a` is double in `1.parquet` but string in `2.parquet`"),
    ("data.parquet --target z", "target `z` is not a column of `data.parquet`"),
    ("changing --target z --columns b", "target `z` is not a column of `changing`"),
    ("data.parquet --columns aa", "feature `aa` is not a column of"),
    ("data.parquet --exclude leek", "exclude `leek` is not a column of `data.parquet`"),
    ("near.parquet --exclude leek", "did you mean `leak`"),
    ("data.parquet --save nowhere/m.svm", "make it first"),
    ("data.parquet --dead-letters nowhere/x", "make it first"),
    ("data.parquet --report /proc/x", "cannot write in /proc"),
    ("days.parquet --save new.svm", "the label 2020-01-01 of type date cannot be saved"),
    ("days.parquet --checkpoint c", "the label 2020-01-01 of type date cannot be saved"),
]
USAGE = [
    ("data.parquet --save data.parquet", "--save data.parquet would replace the input"),
    ("data.parquet --checkpoint c --save ./c", "replace the file of --save"),
    ("data.parquet --save folder", "--save folder is a folder: name a file"),
    ("data.parquet --save null.svm", "--save null.svm is not a regular file"),
    ("data.parquet --save /dev/null", "is not a regular file"),
    ("data.parquet --checkpoint .", "is a folder: name a file"),
    ("data.parquet --dead-letters folder", "is a folder: name a file"),
    ("data.parquet --report m.svm", "a file of that name is there; name a folder"),
    ("data.parquet --no-scale --reject 100", "--reject: not with --no-scale"),
    ("data.parquet --patience 5", "give --label-delay"),
    ("data.parquet --kernel linear --gamma 2", "--gamma: not for"),
    ("data.parquet --degree 4", "--degree"),
    ("data.parquet --parse-numbers=", "--parse-numbers"),
    ("data.parquet --class-weight True=heavy", "--class-weight"),
    ("data.parquet --label-delay 5 --label-moment absent", "moment='absent': no event has"),
    ("data.parquet --C -1", "C=-1"),
    ("data.parquet --speed 2", "--timestamp"),
]
NUMBERS = [
    "--rate 0", "--rate nan", "--rate -1", "--rate inf", "--seed -1", "--shuffle-buffer -1",
    "--metrics-port 99999", "--hashing 99999999999", "--window 99999999999999999999",
    "--learner tracking --window 99999999999999999999", "--limit 0",
    "--kernel polynomial --degree 0",
]  # fmt: skip
PREDICTED = [
    ("m.svm other.parquet -o out.parquet", 1, "other.parquet has none of the model's features: a"),
    ("m.svm other.parquet --target y", 1, "has none of the model's features: a, b, t"),
    ("m.svm none.parquet -o out.parquet", 1, "no rows"),
    ("m.svm none.parquet --target y", 1, "no row has a label in `y`"),
    ("words.svm data.parquet -o out.parquet", 1, "has no column of lists"),
    ("scaler.svm data.parquet -o out.parquet", 1, "holds no learner that predicts rows"),
    ("cut.svm data.parquet -o out.parquet", 1, "is damaged"),
    ("data.parquet data.parquet -o out.parquet", 1, "is no streamsvm model"),
    ("m.svm data.parquet -o data.parquet", 2, "--output data.parquet would replace the input"),
    ("m.svm data.parquet -o m.svm", 2, "--output m.svm would replace the model"),
    ("m.svm data.parquet", 2, "name --output OUT for the predictions, or --target"),
    ("m.svm data.parquet --target y --probabilities", 2, "name --output OUT"),
    ("m.svm data.parquet -o out.parquet --positive True", 2, "--positive needs --target"),
    ("m.svm data.parquet -o out.xls", 2, ".parquet, .csv, .jsonl"),
    ("m.svm tags.parquet -o o.csv --keep tags", 2, "o.csv cannot hold a column"),
    ("changing m.svm -o out.parquet", 2, "changing is a folder: name the model's file first"),
    ("m.svm changing -o out --target y", 2, "--target evaluates"),
    ("m.svm changing -o changing/out", 2, "apart from the input"),
    ("m.svm changing -o out.parquet --jobs 2", 2, "--jobs needs a folder"),
    ("m.svm data.parquet -o out --jobs 2", 2, "--jobs needs a folder"),
    ("m.svm row.parquet -o out --keep row", 2, "has a column of that name already"),
]
FORGOTTEN = [
    ("sgd.svm --ids ids", 2, "SVMSGDClassifier cannot forget examples; learners that"),
    ("sgd.svm", 2, "--ids FILE"),
    ("sgd.svm --ids ids --keys ids", 2, "--keys FILE"),
    ("sgd.svm --ids ids -o ids", 2, "would replace"),
    ("other.svm --ids ids", 1, "other.svm"),
    ("sgd.svm --ids other", 1, "other"),
    ("ids --ids ids", 1, "no streamsvm model"),
]
COMMANDS = [
    *((REPLAY + given, 1, said) for given, said in DATA),
    *((REPLAY + given, 2, said) for given, said in USAGE),
    *((f"{REPLAY}data.parquet {given}", 2, "") for given in NUMBERS),
    *((f"predict {given}", code, said) for given, code, said in PREDICTED),
    *((f"forget {given}", code, said) for given, code, said in FORGOTTEN),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory, _learnt):
    """Write what the commands are given, once: they may change none of it."""
    folder = tmp_path_factory.mktemp("refused")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for path in _learnt.iterdir():
            shutil.copy(path, path.name)
        write("none.parquet", **{name: values[:0] for name, values in columns().items()})
        write("one.parquet", y=[True] * 600)
        write("bare.parquet", a=None, b=None, t=None)
        write("nested.parquet", a=[[1.0]] * 600)
        write("tags.parquet", tags=[[1.0]] * 600)
        write("near.parquet", leak=columns()["a"])
        write("changing/1.parquet")
        write("changing/2.parquet", a=["text"] * 600)
        write("row.parquet/1.parquet", row=range(600))
        pq.write_table(pa.table({"other": [1.0], "y": [True]}), "other.parquet")
        days = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")
        write("days.parquet", y=days[np.arange(600) % 2])
        Path("hello.parquet").write_text("hello")
        Path("blank.parquet").touch()
        Path("rows.txt").write_text("a,y\n1,2\n")
        Path("cut.parquet").write_bytes(Path("data.parquet").read_bytes()[:2000])
        Path("cut.svm").write_bytes(Path("m.svm").read_bytes()[:1000])
        Path("null.svm").symlink_to("/dev/null")
        Path("ids").write_text("1\n")
        Path("folder").mkdir()
        streamsvm.save(streamsvm.SVMSGDClassifier(), "sgd.svm")
        streamsvm.save(streamsvm.StandardScaler(), "scaler.svm")
        words = streamsvm.Chain() | streamsvm.SequencePerceptron()
        words.learn_one([["a"]], ["B"])
        streamsvm.save(words, "words.svm")
    return folder


@pytest.fixture(autouse=True)
def _folder(files, monkeypatch):
    monkeypatch.chdir(files)


def contents():
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("command", "code", "said"), COMMANDS, ids=[command for command, *_ in COMMANDS]
)
def test_it_is_refused_in_one_line_and_nothing_is_written(command, code, said, run, monkeypatch):
    before = contents()
    if (code == 2 and "absent" not in command) or " nowhere/" in command or "/proc/" in command:
        # It is seen before anything is learnt.
        monkeypatch.setattr(running.Run, "execute", None)
    out, err = run(*command.split(), code=code)
    # Beside it are the usage of the command, and how a file differs from the model.
    (line,) = [line for line in err.splitlines() if not line.startswith(("usage: ", "in "))]
    assert line.startswith("streamsvm") and said in line
    assert not out or "one.parquet" in command
    assert contents() == before
