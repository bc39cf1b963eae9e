"""Shards on Ray: what dies is started again, and the model is the same to the last bit."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamsvm import LASVMClassifier, SVMSGDClassifier, kernels
from streamsvm.run.shards import RayWorkers, train_linear_on_shards, train_on_shards

ray = pytest.importorskip("ray", reason="pip install 'streamsvm[ray]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning"),
]

DRIVER = """
import sys
from streamsvm import LASVMClassifier, kernels
from streamsvm.run.shards import RayWorkers, train_on_shards
train_on_shards(
    LASVMClassifier(kernels.RBF(gamma=0.5), C=10.0), sys.argv[1], "label", gap=1e-4,
    workers=RayWorkers(2), folder=sys.argv[2],
    on_round=lambda made: (print("round", flush=True), sys.stdin.readline()),
)
"""


@pytest.fixture
def data(tmp_path):
    random = np.random.default_rng(0)
    x = random.normal(size=(2000, 2))
    y = x[:, 0] + np.sin(3.0 * x[:, 1]) + 0.5 * random.normal(size=2000) > 0.0
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "label": y})
    (tmp_path / "d").mkdir()
    for i in range(4):
        pq.write_table(table.slice(500 * i, 500), tmp_path / "d" / f"{i}.parquet")
    return tmp_path / "d"


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


class Killing(RayWorkers):
    """Kills an actor when the shards are at work."""

    killed = 0

    def ask(self, task, which, *given):
        pids = self.processes() if task in ("learn", "look") else []
        answers = super().ask(task, which, *given)
        for pid in pids[:1]:
            os.kill(pid, signal.SIGKILL)
            self.killed += 1
        return answers


def trained(data, **given):
    template = LASVMClassifier(kernels.RBF(gamma=0.5), C=10.0)
    return train_on_shards(template, data, "label", gap=1e-4, **given)[0]


def are_same(a, b):
    a, b = a.support_vectors(), b.support_vectors()
    return (a.entered == b.entered).all() and (a.coefficients == b.coefficients).all()


def test_actors_that_are_killed_change_nothing(data):
    workers = Killing(2)
    assert are_same(trained(data, workers=workers), trained(data))
    assert workers.killed >= 3


def test_linear_models_are_the_same_too(data):
    template = SVMSGDClassifier(l2=0.01)
    one, two = (
        train_linear_on_shards(template, data, "label", workers=workers)[0]
        for workers in (RayWorkers(2), None)
    )
    assert one.weights == two.weights and one.intercept == two.intercept


def test_a_driver_that_is_killed_goes_on(data, tmp_path):
    command = [sys.executable, "-c", DRIVER, str(data), str(tmp_path / "work")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as process:
        assert process.stdout.readline() == "round\n"
        process.stdin.write("\n")
        process.stdin.flush()
        time.sleep(0.05)
        process.kill()
    assert (tmp_path / "work" / "united.svm").exists()
    done = trained(data, workers=RayWorkers(2), folder=tmp_path / "work")
    assert are_same(done, trained(data))
