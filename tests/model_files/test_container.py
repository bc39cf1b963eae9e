import errno
import functools
import os
import sys
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from river import compose, preprocessing, stats

import streamsvm
from connectors import MemorySource
from streamsvm import LASVMClassifier, SVMSGDClassifier, kernels
from streamsvm.errors import (
    DamagedModelFileError,
    ModelFileError,
    NewerModelFileError,
    NotAModelFileError,
    UnwritableModelFileError,
)
from streamsvm.model_files import container as model_file
from streamsvm.preprocessing import river_parts
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from tests.learners.test_lasvm import learnt, rows
from tests.model_files import features_of_test


def rivers():
    imputer = preprocessing.StatImputer(("b", stats.Mean()), ("k", stats.Mode()), ("c", 2.0))
    own = imputer | preprocessing.PreviousImputer() | preprocessing.StandardScaler()
    return own | preprocessing.MinMaxScaler() | SVMSGDClassifier(seed=0)


def gappy(n=120):
    random = np.random.default_rng(0)
    events = [{"a": a, "b": b, "k": int(a > 0), "c": a * b} for a, b in random.normal(size=(n, 2))]
    for i, x in enumerate(events):
        if i % 7 in (1, 2, 3):
            del x["abkc"[i % 7]]
    return [(x, bool(i % 3)) for i, x in enumerate(events)]


def test_transformers_of_river_go_on_from_a_file_and_a_checkpoint(tmp_path):
    whole = rivers()
    assert Run(MemorySource(gappy()), whole).execute().learnt == 120
    for limit in (70, None):
        model = rivers()
        checkpoint = Checkpoint(tmp_path / "run.ckpt")
        Run(MemorySource(gappy()), model, limit=limit, checkpoint=checkpoint).execute()
    loaded = streamsvm.load(tmp_path / "run.ckpt")
    for other in (model, loaded):
        assert other["SVMSGDClassifier"].weights == whole["SVMSGDClassifier"].weights
        assert other["StandardScaler"].vars == whole["StandardScaler"].vars
        assert other["PreviousImputer"]._latest == whole["PreviousImputer"]._latest
    encoder = preprocessing.OneHotEncoder() | SVMSGDClassifier(seed=0)
    for i in range(20):
        encoder.learn_one({"k": "abc"[i % 3], "none": None}, i % 2 == 0)
    streamsvm.save(encoder, tmp_path / "m.svm")
    again = streamsvm.load(tmp_path / "m.svm")
    for model in (encoder, again):
        model.learn_one({"k": "new"}, True)
    assert vars(again["OneHotEncoder"]) == vars(encoder["OneHotEncoder"])
    assert list(again["OneHotEncoder"]._zero_dict) == list(encoder["OneHotEncoder"]._zero_dict)
    assert again["SVMSGDClassifier"].weights == encoder["SVMSGDClassifier"].weights


class _Own(preprocessing.StandardScaler):
    pass


@pytest.mark.parametrize(
    ("transformer", "words"),
    [
        (preprocessing.Normalizer(), "River's Normalizer.*river.OneHotEncoder, .*Pickle the pipe"),
        (_Own(), "a _Own cannot be saved"),
        (
            (compose.Select("a") | preprocessing.StandardScaler())
            + (compose.Select("k") | preprocessing.OneHotEncoder()),
            r"TransformerUnion .* Use streamsvm.StandardScaler\(\) .*connectors.one_hot\(x\)",
        ),
        (preprocessing.StandardScaler(window_size=5), "without a window"),
        (preprocessing.StatImputer(("a", stats.Quantile())), "Mean, Mode, Min, Max and constants"),
    ],
)
def test_what_can_be_done_with_other_transformers_is_said(tmp_path, transformer, words):
    with pytest.raises(ModelFileError, match=words):
        streamsvm.save(transformer | LASVMClassifier(), tmp_path / "m.svm")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "m.svm"
    learnt(*rows(30)).save(path)
    return path


def test_no_altered_byte_and_no_truncation_goes_unnoticed(file):
    content = file.read_bytes()
    places = {*range(200), *range(len(content) - 400, len(content))}
    places |= set(np.random.default_rng(0).integers(0, len(content), 400).tolist())
    damaged = [content[:k] + bytes([content[k] ^ 1]) + content[k + 1 :] for k in places]
    damaged += [content[:size] for size in range(1, len(content), 97)]
    for one in damaged:
        file.write_bytes(one)
        with pytest.raises((DamagedModelFileError, NotAModelFileError)):
            streamsvm.load(file)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "empty"), (b"hello", "not an Arrow file"), (None, "no streamsvm model")],
)
def test_foreign_files(file, content, words):
    if content is None:
        with pa.ipc.new_file(file, pa.schema([("a", pa.int64())])):
            content = b""
    else:
        file.write_bytes(content)
    with pytest.raises(NotAModelFileError, match=words):
        streamsvm.load(file)


@pytest.mark.parametrize(
    ("number", "error", "advice"),
    [(5, NewerModelFileError, "upgrade"), (3, ModelFileError, "let the model learn anew")],
)
def test_other_formats(file, monkeypatch, number, error, advice):
    monkeypatch.setattr(model_file, "FORMAT", number)
    learnt(*rows(30)).save(file)
    monkeypatch.undo()
    words = f"in format {number}; this release reads format 4 only: {advice}"
    with pytest.raises(error, match=words):
        streamsvm.load(file)


def _no_space(*args):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(file, function, monkeypatch):
    before = file.read_bytes()
    monkeypatch.setattr(os, function, _no_space)
    with pytest.raises(UnwritableModelFileError, match="No space left.*unchanged"):
        learnt(*rows(60)).save(file)
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == [file.name]


def test_unwritable_places(tmp_path):
    model = LASVMClassifier()
    with pytest.raises(OSError, match="No such file"):
        model.save(tmp_path / "nowhere" / "m.svm")
    with pytest.raises(UnwritableModelFileError):
        model.save(tmp_path)
    with pytest.raises(FileNotFoundError):
        streamsvm.load(tmp_path / "none.svm")


class Odd(NamedTuple):
    a: float


def test_what_a_file_cannot_hold(tmp_path, monkeypatch):
    model = LASVMClassifier()
    model.learn_one({("a", 1): 1.0}, True)
    with pytest.raises(ModelFileError, match="feature name"):
        model.save(tmp_path / "m.svm")
    model = LASVMClassifier()
    model.learn_one({"a": 1.0}, (1, 2))
    with pytest.raises(ModelFileError, match="label"):
        model.save(tmp_path / "m.svm")
    kernels.register(Odd, of="dot")(lambda kernel, product: kernel.a * product)
    model = LASVMClassifier(kernel=Odd(1.0))
    model.save(tmp_path / "m.svm")
    monkeypatch.delitem(kernels.registry._values, Odd)
    with pytest.raises(ModelFileError, match=r"'Odd', which is not registered here"):
        streamsvm.load(tmp_path / "m.svm")
    with pytest.raises(ModelFileError, match="a dict cannot be saved"):
        streamsvm.save({}, tmp_path / "n.svm")


def test_a_file_with_more_features_than_it_allows(tmp_path):
    model = SVMSGDClassifier(t0=10.0, sparse=False)
    for i in range(4):
        model.learn_one({f"n{k}": 1.0 + i for k in range(64)}, bool(i % 2))
    model.max_features = 40
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="more features"):
        streamsvm.load(tmp_path / "model")


def test_functions_of_pipelines_are_saved_by_their_names(tmp_path, monkeypatch):
    path = tmp_path / "model.svm"
    model = compose.FuncTransformer(features_of_test.doubled) | SVMSGDClassifier(seed=0)
    for i in range(20):
        model.learn_one({"a": float(i % 5)}, i % 5 > 2)
    streamsvm.save(model, path)
    name = "tests.model_files.features_of_test:doubled"
    for given in ([], [features_of_test.make, os.system]):
        with pytest.raises(ModelFileError, match=f"calls the function '{name}': to allow that"):
            streamsvm.load(path, functions=given)
    again = streamsvm.load(path, functions=[features_of_test.doubled])
    assert next(iter(again.steps.values())).func is features_of_test.doubled
    assert again.predict_proba_one({"a": 3.0}) == model.predict_proba_one({"a": 3.0})
    # Nothing is imported for the sake of a file.
    monkeypatch.setattr(river_parts, "name_of", lambda function: "this:s")
    streamsvm.save(compose.FuncTransformer(features_of_test.doubled) | SVMSGDClassifier(), path)
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match="calls the function"):
        streamsvm.load(path)
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    "function",
    [lambda x: x, features_of_test.make(), functools.partial(features_of_test.doubled), {}.get],
)
def test_functions_without_a_name_are_refused(tmp_path, function):
    model = compose.FuncTransformer(function) | SVMSGDClassifier(seed=0)
    with pytest.raises(ModelFileError, match="cannot be saved: model files hold functions by"):
        streamsvm.save(model, tmp_path / "model.svm")
