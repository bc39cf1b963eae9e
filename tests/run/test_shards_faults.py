"""Shards: files, folders and arguments that are not what they should be are refused, and why."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import connectors.parquet_files
from connectors import SchemaChangedError, SourceChangedError
from streamsvm import LaRankClassifier, LASVMClassifier, StandardScaler
from streamsvm.errors import CheckpointError, FeatureError, LabelError, ParameterError
from streamsvm.run.shards import train_on_shards
from tests.run import shard_rows
from tests.run.shard_rows import KERNEL, Forgetful

TEMPLATE = LASVMClassifier(KERNEL, C=10.0)


def drawn(n=300):
    x, y = shard_rows.drawn(n)
    return pa.table({"a": x[:, 0], "b": x[:, 1], "label": y > 0})


def write(folder, *tables):
    folder.mkdir()
    for i, table in enumerate(tables):
        pq.write_table(table, folder / f"p{i}.parquet")
    return folder


@pytest.fixture
def data(tmp_path):
    """A folder of three files."""
    return write(tmp_path / "d", *(drawn().slice(100 * i, 100) for i in range(3)))


class Changing(Forgetful):
    """Workers that all die before they look, and read again; meanwhile a file is replaced."""

    def __init__(self, file, table):
        super().__init__()
        self.file, self.table = file, table

    def when(self, task):
        if task != "evaluate" or self.table is None:
            return False
        pq.write_table(self.table, self.file)
        self.table = None
        return True


@pytest.mark.parametrize("change", ["values", "longer", "shorter"])
def test_a_file_that_changes_meanwhile_is_noticed(data, change):
    table = drawn().slice(100, {"values": 100, "longer": 150, "shorter": 50}[change])
    if change == "values":
        table = table.set_column(0, "a", pa.array(np.arange(100.0)))
    workers = Changing(data / "p1.parquet", table)
    with pytest.raises(SourceChangedError, match=r"p1.parquet` is not what it was"):
        train_on_shards(TEMPLATE, data, "label", workers=workers)


def test_missing_numbers_count_as_the_mean_behind_a_scaler(tmp_path):
    table = drawn()
    a = table["a"].to_numpy().astype(float)
    a[::7] = np.nan
    lacking = table.set_column(0, "a", pa.array(a, from_pandas=True))
    filled = table.set_column(0, "a", pa.array(np.where(np.isnan(a), np.nanmean(a), a)))
    template = StandardScaler() | TEMPLATE
    (model, report), (_, other) = (
        train_on_shards(template, write(tmp_path / name, own), "label")
        for name, own in [("lacking", lacking), ("filled", filled)]
    )
    n, mean, _ = model["StandardScaler"].statistics["a"]
    assert (n, mean) == (300 - 43, pytest.approx(np.nanmean(a)))
    assert report.reached and other.reached
    assert train_on_shards(template, tmp_path / "lacking", "label", shards=3)[1].reached
    with pytest.raises(FeatureError, match="p0.parquet: row 0: 'a' is missing"):
        train_on_shards(TEMPLATE, tmp_path / "lacking", "label")


def test_columns_differ_between_files_as_for_one_source(tmp_path):
    table = drawn(200)
    text = table.set_column(0, "a", pa.array(["x"] * 200))
    for i, other in enumerate([text, table.set_column(2, "label", pa.array(["y"] * 200))]):
        with pytest.raises(SchemaChangedError, match="convert one of the files"):
            train_on_shards(TEMPLATE, write(tmp_path / f"{i}", table, other), "label")
    folder = write(tmp_path / "less", table, table.drop_columns("a"))
    with pytest.raises(FeatureError, match=r"p1.parquet: 'a' is missing"):
        train_on_shards(TEMPLATE, folder, "label")
    zero = TEMPLATE.clone({"missing": "zero"})
    assert train_on_shards(zero, folder, "label")[1].reached
    unlabelled = write(tmp_path / "unlabelled", table, table.drop_columns("label"))
    with pytest.raises(LabelError, match=r"p1.parquet: row 0: the label is missing"):
        train_on_shards(zero, unlabelled, "label")
    assert train_on_shards(TEMPLATE, folder, "label", exclude=["a"])[1].rows == 400
    assert train_on_shards(zero, folder, "label", columns=["b", "a"])[1].reached


def test_footers_of_many_folders_are_read_twice(tmp_path, monkeypatch):
    (tmp_path / "d").mkdir()
    for i in range(20):
        write(tmp_path / "d" / f"day={i}", drawn(20))
    read, identity_of = [], connectors.parquet_files.identity_of

    def counted(path, *given):
        read.append(path)
        return identity_of(path, *given)

    monkeypatch.setattr(connectors.parquet_files, "identity_of", counted)
    model, _ = train_on_shards(TEMPLATE, tmp_path / "d", "label", max_rounds=1)
    assert len(read) == 40 and "day" in model.feature_names


def test_folders_of_others_and_damaged_ones_are_refused(data, tmp_path):
    work, copy = tmp_path / "work", tmp_path / "copy"
    train_on_shards(TEMPLATE, data, "label", folder=work)

    def refused(why, change):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(work, copy)
        change(copy)
        with pytest.raises(CheckpointError, match=why):
            train_on_shards(TEMPLATE, data, "label", folder=copy)

    def cut(folder):
        (folder / "united.svm").write_bytes((folder / "united.svm").read_bytes()[:-100])

    def exchanged(folder):
        (folder / "united.svm").unlink()
        shutil.copy(folder / "shard-00001.svm", folder / "shard-00000.svm")

    refused("no plan.json", lambda f: (f / "plan.json").unlink())
    refused("damaged", lambda f: (f / "plan.json").write_bytes(b"{"))
    refused("of another training", exchanged)
    refused("united.svm is damaged", cut)
    other = tmp_path / "other"
    train_on_shards(TEMPLATE, data, "label", shards=2, folder=other)
    refused("of another training", lambda f: shutil.copy(other / "united.svm", f / "united.svm"))
    for source, again, why in (
        (data, {"shards": 3}, "training: shards changed;"),
        (data, {"exclude": ["a"]}, "training: options changed;"),
        (data / "p0.parquet", {}, "training: files changed;"),
        (data, {"folder": data}, r"no plan.json, but p0.parquet"),
        (data, {"folder": data / "p0.parquet"}, "cannot be a folder"),
    ):
        with pytest.raises(CheckpointError, match=why):
            train_on_shards(TEMPLATE, source, "label", **{"shards": 2, "folder": other} | again)


@pytest.mark.parametrize(
    ("template", "given", "why"),
    [
        (TEMPLATE, {"workers": 2}, "workers"),
        (TEMPLATE, {"zork": 1}, "zork"),
        (TEMPLATE, {"filters": [("a", ">", 0)]}, "filters"),
        (TEMPLATE, {"folder": 3}, "folder"),
        (TEMPLATE, {"folder": ""}, "folder"),
        (TEMPLATE, {"max_rounds": None}, "max_rounds"),
        (TEMPLATE, {"on_round": None}, "on_round"),
        (TEMPLATE, {"shards": 301}, "shards=301: there are 300 rows"),
        (LASVMClassifier(), {}, "kernel=None"),
        (LASVMClassifier(KERNEL, window=9), {}, "window"),
        (LaRankClassifier(KERNEL), {}, "LASVMClassifier"),
        (StandardScaler(reject=5.0) | TEMPLATE, {}, "reject"),
    ],
    ids=str,
)
def test_wrong_arguments_and_templates_are_named(data, template, given, why):
    with pytest.raises(ParameterError, match=why):
        train_on_shards(template, data, "label", **given)


@pytest.mark.parametrize(
    ("label", "w", "why"),
    [
        (np.arange(300) % 2, np.zeros(300), "class weight above 0"),
        (np.arange(300) % 2, np.arange(300) % 2.0, "class weight above 0"),
        (np.arange(300), np.ones(300), "300 labels"),
        (np.zeros(300, int), np.ones(300), "one label"),
    ],
)
def test_labels_that_cannot_be_separated_are_refused(tmp_path, label, w, why):
    table = drawn().set_column(2, "label", pa.array(label)).append_column("w", pa.array(w))
    with pytest.raises(LabelError, match=why):
        train_on_shards(TEMPLATE, write(tmp_path / "d", table), "label", weight="w")


def test_a_class_without_a_weight_is_refused(data):
    with pytest.raises(LabelError, match="class weight above 0"):
        train_on_shards(TEMPLATE.clone({"class_weight": {True: 0.0}}), data, "label")
