"""Model files that an older release wrote: they load, predict what they did, and go on alike."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from streamsvm import load
from tests.model_files import write_fixtures as fixtures
from tests.slow import slow_but

FOLDER = Path(__file__).with_name("fixtures")
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
# Where the steps chosen hang on the last digits, which another machine rounds in another way, other
# examples are learnt first: a few steps later, margins differ by as much.
UNSTEADY = {
    "lasvm_classes": 0.05,
    "lasvm_classes_rest": 0.05,
    "adaptive": 0.5,
    "adaptive_classes": 0.5,
}


def close(found, expected, tolerance=1e-6):
    assert len(found) == len(expected)
    for (margin, label, p), (old_margin, old_label, old_p) in zip(found, expected, strict=True):
        assert margin == pytest.approx(old_margin, rel=1e-6, abs=tolerance) and label == old_label
        assert p == pytest.approx(old_p, rel=1e-6, abs=tolerance)


def test_each_case_has_a_file_and_they_are_small():
    names = {name for name, *_ in fixtures.cases()} | {"checkpoint"}
    assert names == set(EXPECTED) == {path.stem for path in FOLDER.glob("*.svm")}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 700_000


# A batch makes the same model, and what takes events of these need not be compiled.
AS_BATCHES = {
    "huller", "larank_budget", "lasvm_budget", "lasvm_classes_rest", "lasvm_window", "pa_sparse",
    "pegasos_merge", "perceptron_project", "sbp", "tracking_support",
}  # fmt: skip


def table_of(some):
    """Return events as a table."""
    names = sorted({name for x, _ in some for name in x})
    return pa.table({name: [x.get(name) for x, _ in some] for name in names})


def predictions_of_batch(model, n_classes):
    """Return what `fixtures.predictions` does."""
    table = table_of(fixtures.events(n_classes)).slice(0, 4)
    margins, labels = model.decision_function_many(table), model.predict_many(table)
    p = model.predict_proba_many(table).to_pylist()
    return list(zip(margins.tolist(), labels.to_pylist(), p, strict=True))


@pytest.mark.parametrize(
    "name",
    slow_but(
        EXPECTED,
        *(name for name in EXPECTED if name != "pa_sparse"),
        compiling="kernel perceptrons sparse",
    ),
)
def test_older_files_load_and_go_on(name):
    expected = EXPECTED[name]
    model, n_classes = load(FOLDER / f"{name}.svm"), expected["classes"]
    predictions = predictions_of_batch if name in AS_BATCHES else fixtures.predictions
    close(predictions(model, n_classes), expected["now"])
    if name == "checkpoint":
        return
    some = fixtures.events(n_classes)[expected["first"] :]
    if name in AS_BATCHES:
        model.learn_many(table_of(some), [y for _, y in some])
    else:
        fixtures.learn(model, some)
    close(predictions(model, n_classes), expected["then"], UNSTEADY.get(name, 1e-6))


def test_a_run_goes_on_from_an_older_checkpoint(tmp_path):
    path = tmp_path / "run.svm"
    shutil.copy(FOLDER / "checkpoint.svm", path)
    model, run = fixtures.a_run(path, None)
    assert run.execute().rows == fixtures.ALL
    assert run.monitor.get()["n_examples"] == fixtures.ALL
    close(fixtures.predictions(model, 2), EXPECTED["checkpoint"]["then"])
