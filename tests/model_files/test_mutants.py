"""Spoilt model files in processes of their own: a crash or a hang would end the tests."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import streamsvm
from streamsvm import kernels, load
from streamsvm.errors import ModelFileError
from streamsvm.learners.bases.registry import registered_learners
from tests.model_files import models
from tests.model_files.mutants import Content, leaves
from tests.slow import slow_but

ROOT = Path(__file__).resolve().parents[2]
# More by choice: MUTANTS=5000.
COUNT = os.environ.get("MUTANTS", "50")


def test_there_is_a_model_of_each_learner():
    made = {type(make()) for make in models.MAKE.values()}
    assert made >= {learner.cls for learner in registered_learners()}


@pytest.mark.parametrize("name", slow_but(models.MAKE, "adaptive"))
def test_spoilt_files_are_refused_or_harmless(name, tmp_path):
    models.write(name, tmp_path / "m.svm")
    command = [sys.executable, "-m", "tests.model_files.mutants", str(tmp_path / "m.svm"), "1"]
    command.append(COUNT)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    said = f"{done.stdout[-400:]}\n{done.stderr[-4000:]}"
    assert done.returncode == 0, f"exit code {done.returncode}: {said}"
    assert f"{COUNT} mutants" in done.stdout


SUMS = {
    "pp": (streamsvm.HullerClassifier, {"kernel": kernels.Linear()}),
    "late_f": (streamsvm.SBPClassifier, {"kernel": kernels.Linear()}),
    "f": (streamsvm.KernelPerceptronClassifier, {"max_support_vectors": 5, "budget": "remove"}),
    "w": (streamsvm.TrackingSVMClassifier, {"kernel": kernels.Linear()}),
}


def sums_of(content, name):
    """Return the sums of kernel values that a file holds under a name."""
    if name == "pp":
        return content.parts[0]["info"][name]
    return content.array(content.names.index(f"0.{name}"))


@pytest.mark.parametrize("name", SUMS)
def test_wrong_sums_are_computed_again(name, tmp_path):
    cls, parameters = SUMS[name]
    model = cls(**parameters, seed=1) if name != "f" else cls(**parameters)
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(40, 2)).astype(np.float32), draw.integers(2, size=40)
    model.learn_many(x, y)
    model.save(tmp_path / "m")
    content = Content((tmp_path / "m").read_bytes())
    right = sums_of(content, name)
    if name == "pp":
        content.parts[0]["info"][name] = 7.5
    else:
        i = content.names.index(f"0.{name}")
        content.columns[i] = np.full_like(content.array(i), 7.5).tobytes()
    (tmp_path / "spoilt").write_bytes(content.written())
    assert sums_of(content, name) != pytest.approx(right, rel=1e-5, abs=1e-6)
    load(tmp_path / "spoilt").save(tmp_path / "mended")
    mended = Content((tmp_path / "mended").read_bytes())
    assert sums_of(mended, name) == pytest.approx(right, rel=1e-5, abs=1e-6)
    read = load(tmp_path / "m")
    for each in (model, read):
        each.learn_many(x[::-1], y[::-1])
    assert np.array_equal(model.decision_function_many(x), read.decision_function_many(x))


@pytest.mark.parametrize("name", ["adaptive_classes", "lasvm_classes", "sequence_greedy", "sbp"])
def test_counts_that_cannot_be_are_refused(name, tmp_path):
    models.write(name, tmp_path / "m.svm")
    raw = (tmp_path / "m.svm").read_bytes()
    parts = Content(raw).parts
    paths = [p for p in leaves(parts) if str(p[-1]).startswith("n_") and "parameters" not in p]
    names = [n for n in Content(raw).names if n.endswith(("cache_counts", "info", "waiting"))]
    assert len(paths) > 5 and bool(names) == (name != "sequence_greedy")
    for where in [*paths, *names]:
        content = Content(raw)
        if isinstance(where, str):
            i = content.names.index(where)
            array = content.array(i)
            array[0] = 2**62
            content.columns[i] = array.tobytes()
        else:
            holder = content.parts
            for key in where[:-1]:
                holder = holder[key]
            holder[where[-1]] = 2**62
        (tmp_path / "spoilt").write_bytes(content.written())
        with pytest.raises(ModelFileError):
            load(tmp_path / "spoilt")
