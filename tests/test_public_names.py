"""The public names, which are imported when they are used; and the command before that."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

import streamsvm
from streamsvm import _public, _public_runs
from tests.interruptions import needs_ctrl_c
from tests.programs import ROOT, python
from tests.slow import slow_but


def test_all_names_are_there():
    names = {name for one in (_public, _public_runs) for name in vars(one) if name[0] != "_"}
    assert names | {"kernels"} == set(streamsvm.__all__) <= set(dir(streamsvm))
    for name in streamsvm.__all__:
        assert getattr(streamsvm, name) is not None
    assert streamsvm.errors.ParameterError and streamsvm.kernels.RBF
    with pytest.raises(AttributeError, match="'streamsvm' has no attribute 'LASVMRegressor'"):
        streamsvm.LASVMRegressor  # noqa: B018
    with pytest.raises(AttributeError):
        streamsvm._nothing  # noqa: B018


FIRST = [
    "import streamsvm.learners.lasvm",
    "from streamsvm.model_files.container import load; load('m.svm')",
    "from streamsvm import *; LASVMClassifier, warm, kernels",
    "from streamsvm import LASVMClassifier",
    "import streamsvm; streamsvm.kernels.RBF",
    "from streamsvm.learners.bases.registry import registered_learners",
    "from streamsvm.run.runner import Run",
    "from streamsvm import Run",
    "from streamsvm.preprocessing.standard_scaler import StandardScaler",
]


@pytest.mark.parametrize("first", slow_but(FIRST, *FIRST[:2]))
def test_whatever_is_imported_first_all_learners_are_registered(first, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    streamsvm.save(streamsvm.StandardScaler() | streamsvm.LASVMClassifier(), "m.svm")
    then = "from streamsvm.learners.bases.registry import registered_learners as names"
    done = python("-c", f"{first}; {then}; print(*[learner.name for learner in names()])")
    kernel = ["huller", "incremental", "kernel_pa", "kernel_pegasos", "kernel_perceptron"]
    sequences = ["sequence_larank", "sequence_pa", "sequence_perceptron"]
    others = ["larank", "lasvm", "ospas", "sbp", *sequences, "sgd", "sgdqn", "tracking"]
    assert done.split() == ["adaptive", "ambiguous", "concepts", *kernel, *others]


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_command_answers_before_the_compiler_is_imported(option):
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print(sorted({'numba', 'river', 'numpy'} & {*sys.modules})))\n"
        f"from streamsvm.__main__ import main\nmain(['{option}'])"
    )
    assert python("-c", code).endswith("[]\n")


@needs_ctrl_c
def test_an_interruption_of_the_imports_is_one_line():
    draw = random.Random(1)
    for _ in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", _ANNOUNCED, "replay", "no.parquet", "--target", "y"],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        # Not at once: `main` is called after the announcement.
        time.sleep(draw.uniform(0.05, 0.4))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (130, "streamsvm: interrupted\n")


# The interpreter's own start is over when it says so: Python interrupts that in its own words.
_ANNOUNCED = """
import sys
from streamsvm.__main__ import main
print("ready", flush=True)
sys.exit(main())
"""
