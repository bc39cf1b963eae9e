"""A new learner is one folder, one file, one twin and one test: it registers itself, that is all.

The tests of all learners, River's checks, the command, `warm` and model files find it; each runs in
a process of its own, where the perceptron is registered, so that no other test sees it.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
TWIN = """
import numpy as np
from streamsvm.support import states
from streamsvm.support.rows import sparse
from tests.new_learner.perceptron.state import PerceptronState
from tests.new_learner.perceptron.step import learn_rows
from tests.new_learner.slow_perceptron import slow_perceptron
draws = np.random.default_rng(0)
x = (draws.normal(size=(300, 5)) * (draws.random((300, 5)) < 0.7)).astype(np.float32)
y = np.sign(x @ draws.normal(size=5) + 0.3 * draws.normal(size=300))
weight = draws.integers(0, 3, size=300).astype(float)
w, b, expected = slow_perceptron(x, y, weight)
for rows in (x, sparse(x)):
    state, margins = states.new(PerceptronState, {"features": 5}), np.zeros(300)
    learn_rows(state, rows, y, weight, margins)
    np.testing.assert_allclose(margins, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(state.weights, w, rtol=1e-12, atol=1e-12)
    assert abs(state.info[0] - b) < 1e-12
"""
COMMAND = """
import sys
import streamsvm
from streamsvm.cli.main import main
from tests.new_learner.perceptron_classifier import PerceptronClassifier
assert main(["replay", "examples/data/bananas.parquet", "--target", "label", "--learner",
             "perceptron", "--limit", "500", "--save", sys.argv[1]]) == 0
model = list(streamsvm.load(sys.argv[1]).steps.values())[-1]
assert type(model) is PerceptronClassifier and model.n_examples == 500
streamsvm.warm(PerceptronClassifier(), sparse=False)
"""


def run(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_it_matches_its_slow_twin():
    run("-c", TWIN)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "least"), [("test_all_learners", 14), ("test_copies", 2), ("test_river", 14)]
)
def test_it_passes_what_all_learners_must(file, least):
    plugin = ["-p", "tests.new_learner.perceptron_classifier", "-p", "no:cacheprovider"]
    # The slow ones too; the bracket, as there is a kernel_perceptron.
    chosen = ["-m", "slow or not slow", "-k", "[perceptron-"]
    out = run("-m", "pytest", "-q", *plugin, f"tests/learners/{file}.py", *chosen)
    passed = int(out.split(" passed")[0].split()[-1])
    assert passed >= least and "skipped" not in out


def test_the_command_warm_and_model_files_know_it(tmp_path):
    out = run("-c", COMMAND, str(tmp_path / "p.svm"))
    assert "progressive accuracy" in out


def test_what_it_costs():
    """A learner of this size is half of what it was when each cost 2,450 lines in eleven places."""
    folder = Path(__file__).parent
    files = [*folder.glob("perceptron/*.py"), folder / "perceptron_classifier.py"]
    assert sum(len(path.read_text().splitlines()) for path in files) < 300
    assert np.all([path.exists() for path in files])
