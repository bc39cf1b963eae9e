"""`streamsvm predict` finds in a file what comes into a model, whatever its first step is."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamsvm
from connectors import ParquetSource, one_hot
from streamsvm import (
    Nystroem,
    RandomFourierFeatures,
    RankBits,
    StandardScaler,
    SVMSGDClassifier,
    kernels,
)
from streamsvm.cli.main import main
from streamsvm.run.runner import Run

N = 400


def random_features():
    return RandomFourierFeatures(gamma=0.3, n_components=30, seed=1)


MODELS = {
    "random": random_features,
    "scaler, random": lambda: StandardScaler() | random_features(),
    "centres": lambda: Nystroem(kernels.RBF(gamma=0.3), n_components=30),
    "scaler, centres": lambda: StandardScaler() | Nystroem(kernels.RBF(0.3), n_components=30),
    "bits": RankBits,
    "scaler, bits": lambda: StandardScaler() | RankBits(),
    "scaler": StandardScaler,
}


@pytest.mark.parametrize("name", MODELS)
def test_columns_are_those_that_come_into_the_first_step(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    # Names of columns that components of a map have, too.
    columns = {str(i): rng.normal(size=N) for i in (7, 25)}
    columns["colour"] = np.array(["red", "green", "blue"])[rng.integers(0, 3, N)]
    label = columns["25"] * columns["7"] + 2.0 * (columns["colour"] == "red") > 0.5
    rows = pa.table(columns)
    Path("new").mkdir()
    pq.write_table(rows.append_column("label", pa.array(label)), "learnt.parquet")
    pq.write_table(rows.append_column("id", pa.array(range(N))), "new/a.parquet")
    model = MODELS[name]() | SVMSGDClassifier(seed=1)
    with ParquetSource("learnt.parquet", target="label") as source:
        Run(source, model).execute()
    streamsvm.save(model, "m.svm")
    wanted = [model.predict_one(one_hot(x)) for x in rows.to_pylist()]
    assert len({*wanted}) == 2
    predict = ["predict", "m.svm"]
    assert main([*predict, "new/a.parquet", "-o", "a.parquet", "--keep", "id"]) == 0
    assert main([*predict, "new", "-o", "out", "--keep", "id", "--allow-mismatch"]) == 0
    assert main([*predict, "new/a.parquet", "-o", "b.parquet", "--columns", "25,7,colour"]) == 0
    for file in ("a.parquet", "out/a.parquet", "b.parquet"):
        assert pq.read_table(file)["prediction"].to_pylist() == wanted
    assert ("has no list: 7, 25, colour" in (err := capsys.readouterr().err)) == (name == "random")
    assert ("has no list: colour" in err) == (name == "scaler, random")
    assert main([*predict, "learnt.parquet", "--target", "label"]) == 0
    share = f"{(np.array(wanted) != label).mean():.2%} of 400"
    assert share in capsys.readouterr().out


def of_days(*days):
    """Write a folder for each day, and return rows for all."""
    x = np.random.default_rng(len(days)).normal(size=(50, 2))
    for day in days:
        Path(f"lake{len(days)}/day={day}").mkdir(parents=True)
        columns = {"a": x[:, 0], "b": x[:, 1], "y": x[:, 0] > 0.0, "id": np.arange(50)}
        pq.write_table(pa.table(columns), f"lake{len(days)}/day={day}/part.parquet")


def test_texts_and_columns_that_the_model_never_learnt_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    of_days("2026-01-01", "2026-01-02")
    of_days("2026-01-01", "2026-01-03", "2026-01-04")
    learn = ["replay", "lake2", "--target", "y", "--learner", "sgd", "--quiet", "--exclude"]
    assert main([*learn, "id", "--save", "m.svm"]) == 0
    assert main([*learn, "id,day", "--save", "no_day.svm"]) == 0
    capsys.readouterr()
    texts = "that the model never learnt, and does not use: `day` in"
    unknown = "but unknown to the model:"
    assert main(["predict", "m.svm", "lake3", "-o", "o.parquet", "--target", "y"]) == 0
    err = capsys.readouterr().err
    assert f"texts in lake3 {texts} 100 rows ('2026-01-03')" in err
    assert f"in lake3, {unknown} id\n" in err
    # Each file has notes of its own; the same ones are said once.
    assert main(["predict", "m.svm", "lake3", "-o", "out"]) == 0
    err = capsys.readouterr().err
    assert err.count(texts) == 2 and err.count(unknown) == 1
    assert "; notes as above on 2 more -> out" in err
    assert main(["predict", "no_day.svm", "lake3", "-o", "o.parquet", "--keep", "id"]) == 0
    err = capsys.readouterr().err
    assert f"in lake3, {unknown} y, day\n" in err and texts not in err
    assert main(["predict", "lake3", "m.svm", "-o", "o.parquet"]) == 2
    assert "lake3 is a folder: name the model's file first" in capsys.readouterr().err


def test_data_that_does_not_fit_ends_with_1_and_wrong_usage_with_2(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = pa.table({"a": [0.0, 1.0] * 20, "b": [1.0, 2.0] * 20, "y": ["no", "yes"] * 20})
    pq.write_table(table, "data.parquet")
    pq.write_table(table.rename_columns(["p", "q", "y"]), "other.parquet")
    pq.write_table(table.slice(0, 0), "empty.parquet")
    Path("text.txt").write_text("a B\nb C\n\na B\n")
    learn = ["--target", "y", "--quiet", "--learner", "sgd", "--save", "m.svm"]
    assert main(["replay", "data.parquet", *learn]) == 0
    sentences = ["--target", "-1", "--quiet", "--learner", "sequence_perceptron"]
    assert main(["replay", "text.txt", *sentences, "--save", "words.svm"]) == 0
    streamsvm.save(streamsvm.StandardScaler(), "scaler.svm")
    capsys.readouterr()
    output = ["-o", "o.parquet"]
    for command, code, said in (
        (["m.svm", "other.parquet", *output], 1, "has none of the model's features: a, b"),
        (["m.svm", "other.parquet", "--target", "y"], 1, "has none of the model's features: a, b"),
        (["m.svm", "empty.parquet", "--target", "y"], 1, "no row has a label in `y`"),
        (["words.svm", "data.parquet", *output], 1, "has no column of lists"),
        (["scaler.svm", "data.parquet", *output], 1, "holds no learner that predicts rows"),
        (["m.svm", "data.parquet"], 2, "name --output OUT for the predictions"),
        (["m.svm", "data.parquet", *output, "--positive", "yes"], 2, "--positive needs --target"),
    ):
        assert (main(["predict", *command]), said in capsys.readouterr().err) == (code, True)
