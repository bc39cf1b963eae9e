"""Shards on Ray: what dies is started again, and the model is the same to the last bit."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamsvm import LASVMClassifier, SVMSGDClassifier, kernels
from streamsvm.errors import FeatureError, WorkerError
from streamsvm.run.shards import RayWorkers, train_on_shards
from streamsvm.run.shards.reading import planned
from tests.interruptions import needs_ctrl_c

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
    ray = pytest.importorskip("ray", reason="pip install 'streamsvm[ray]'")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


TEMPLATE = LASVMClassifier(kernels.RBF(gamma=0.5), C=10.0)


class Killing(RayWorkers):
    """Kills an actor when the shards are at work."""

    killed = 0

    def ask(self, task, which, *given):
        for n, answer in enumerate(super().ask(task, which, *given)):
            if n == 0 and task in ("learn", "evaluate"):
                os.kill(actors_now()[0], signal.SIGKILL)
                self.killed += 1
            yield answer


def actors_now():
    """Return the processes of actors, as Ray names them."""
    named = [(p, p.read_bytes()) for p in pathlib.Path("/proc").glob("[0-9]*/cmdline")]
    return [int(p.parent.name) for p, name in named if name.startswith(b"ray::_Actor")]


def trained(data, **given):
    return train_on_shards(TEMPLATE, data, "label", gap=1e-4, **given)[0]


def are_same(a, b):
    a, b = a.support_vectors(), b.support_vectors()
    return (a.entered == b.entered).all() and (a.coefficients == b.coefficients).all()


def test_actors_that_are_killed_change_nothing(data):
    workers = Killing(2)
    assert are_same(trained(data, workers=workers), trained(data))
    assert workers.killed >= 3


class Deadly:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (9,)


def test_an_actor_that_dies_each_time_ends_the_training(data):
    workers = RayWorkers(2, max_restarts=1)
    reading, _, pieces = planned((data, "label", {}), TEMPLATE, False, None)
    workers.open(reading, pieces)
    with pytest.raises(WorkerError, match=r"max_restarts=1.*\(1.parquet, 3.parquet\)"):
        list(workers.ask("chosen", [1], Deadly(), None))
    workers.close()


def test_actors_without_room_and_errors_of_data(data):
    workers = RayWorkers(2, patience=1.0, num_cpus=64)
    with pytest.raises(WorkerError, match=r"missing: 2 of 2; .*64.*'CPU': 2.0"):
        trained(data, workers=workers)
    workers = RayWorkers(3)
    for shards in (2, 5):
        model = trained(data, workers=workers, shards=shards)
        assert are_same(model, trained(data, shards=shards))
    assert not any(is_running(pid) for pid in actors_now())
    table = pa.table({"a": [1.0, None], "b": [0.0, 1.0], "label": [True, False]})
    pq.write_table(table, data / "2.parquet")
    with pytest.raises(FeatureError, match=r"^2.parquet: row 1: 'a' is missing"):
        trained(data, workers=workers)


def is_running(pid):
    deadline = time.monotonic() + 20.0
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.05)
    return os.path.exists(f"/proc/{pid}")


def test_linear_models_are_the_same_too(data):
    template = SVMSGDClassifier(l2=0.01)
    one, two = (
        train_on_shards(template, data, "label", workers=workers)[0]
        for workers in (RayWorkers(2), None)
    )
    assert one.weights == two.weights and one.intercept == two.intercept


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=needs_ctrl_c)])
def test_a_driver_that_is_ended_goes_on(data, tmp_path, how):
    command = [sys.executable, "-c", DRIVER, str(data), str(tmp_path / "work")]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as process:
        assert process.stdout.readline() == "round\n"
        process.stdin.write("\n")
        process.stdin.flush()
        time.sleep(0.05)
        process.send_signal(how)
        told = process.communicate()[1]
    if how == signal.SIGINT:
        assert "KeyboardInterrupt: train_on_shards was interrupted, rounds made: " in told
        assert "the same call goes on from there" in told and "ray/_private" not in told
    assert (tmp_path / "work" / "united.svm").exists()
    done = trained(data, workers=RayWorkers(2), folder=tmp_path / "work")
    assert are_same(done, trained(data))
