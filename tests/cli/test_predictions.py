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
def test_columns_are_those_that_come_into_the_first_step(name, predict):
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
    err = predict("m.svm", "new/a.parquet", "-o", "a.parquet", "--keep", "id").err
    assert ("has no list: 7, 25, colour" in err) == (name == "random")
    assert ("has no list: colour" in err) == (name == "scaler, random")
    predict("m.svm", "new", "-o", "out", "--keep", "id", "--allow-mismatch")
    predict("m.svm", "new/a.parquet", "-o", "b.parquet", "--columns", "25,7,colour")
    share = f"test error  {(np.array(wanted) != label).mean():.2%} of 400 examples"
    for more in ([], ["-o", "c.parquet"]):
        assert share in predict("m.svm", "learnt.parquet", "--target", "label", *more).out
    for file in ("a.parquet", "out/a.parquet", "b.parquet", "c.parquet"):
        assert pq.read_table(file)["prediction"].to_pylist() == wanted


def of_days(*days):
    """Write a folder for each day, and return rows for all."""
    x = np.random.default_rng(len(days)).normal(size=(50, 2))
    for day in days:
        Path(f"lake{len(days)}/day={day}").mkdir(parents=True)
        columns = {"a": x[:, 0], "b": x[:, 1], "y": x[:, 0] > 0.0, "id": np.arange(50)}
        pq.write_table(pa.table(columns), f"lake{len(days)}/day={day}/part.parquet")


def test_texts_and_columns_that_the_model_never_learnt_are_named(replay, predict):
    of_days("2026-01-01", "2026-01-02")
    of_days("2026-01-01", "2026-01-03", "2026-01-04")
    for left_out, model in (("id", "m.svm"), ("id,day", "no_day.svm")):
        replay("lake2", "--learner", "sgd", "--exclude", left_out, "--save", model)
    texts = "that the model never learnt, and does not use: `day` in"
    unknown = "but unknown to the model:"
    err = predict("m.svm", "lake3", "-o", "o.parquet", "--target", "y").err
    assert f"texts in lake3 {texts} 100 rows ('2026-01-03')" in err
    assert f"in lake3, {unknown} id\n" in err
    # Each file has notes of its own; the same ones are said once.
    err = predict("m.svm", "lake3", "-o", "out").err
    assert err.count(texts) == 2 and err.count(unknown) == 1
    assert "; notes as above on 2 more -> out" in err
    err = predict("no_day.svm", "lake3", "-o", "o.parquet", "--keep", "id").err
    assert f"in lake3, {unknown} y, day\n" in err and texts not in err
