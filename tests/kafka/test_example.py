"""The example that people copy, run with Apache Kafka: examples/kafka."""

import os
import re
import runpy
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

pytestmark = pytest.mark.kafka

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "kafka"


def test_the_scripts(broker, capsys):
    produce, read = (runpy.run_path(str(FOLDER / f"{n}.py")) for n in ("produce", "read_scored"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "BROKERS": broker.address, "PAGE": "0", "METRICS_PORT": "0"}
    produce["main"](broker.address, 1, 10_000)  # the topics
    feeding = threading.Thread(target=produce["main"], args=(broker.address, 2000, 10_000))
    feeding.start()
    command = ["sh", str(FOLDER / "learn.sh"), "--idle", "2"]
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        found = {}
        while len(found) < 2:
            line = process.stderr.readline()
            assert line, process.wait()
            found |= dict(re.findall(r"(metrics|page): (http://\S+)", line))
        figures = ""
        while "streamsvm_events_total 2001.0" not in figures and process.poll() is None:
            figures = urlopen(found["metrics"]).read().decode()
            time.sleep(0.1)
        assert "<html" in urlopen(found["page"]).read().decode()
        process.communicate(timeout=60)
        assert process.returncode == 0
    feeding.join()
    for name in ("checkpoint_age_seconds", "lag", "failed_commits_total", "offsets_left_out_total"):
        assert f"\nstreamsvm_{name} " in figures
    capsys.readouterr()
    read["main"](broker.address, 3.0)
    said = capsys.readouterr().out
    assert said.endswith("2,001 payments were scored\n") and "looks like fraud" in said
