"""What a run logs, and that nothing is printed unless the application sets logging up."""

import logging
import subprocess
import sys

import pytest

from connectors import KafkaSource, MemorySource
from streamsvm import SVMSGDClassifier
from streamsvm._compiling import clock
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from tests.consumers import Confluent, Partition

EVENTS = [({"a": 1.0}, True), ({"a": -1.0}, False), ({"a": float("inf")}, True)] * 5


def lines(caplog, logger):
    return [(r.levelname, r.getMessage()) for r in caplog.records if r.name == logger]


def test_checkpoints_and_dead_letters(caplog, tmp_path):
    caplog.set_level(logging.DEBUG, "streamsvm")
    path = tmp_path / "run.ckpt"
    for _ in range(2):
        options = {"checkpoint": Checkpoint(path), "bad_events": BadEvents("dead-letter")}
        Run(MemorySource(EVENTS), SVMSGDClassifier(), **options).execute()
    found = lines(caplog, "streamsvm.run.checkpoint")
    assert {level for level, _ in found} == {"INFO"}
    assert f"{path}: checkpoint written after 0 examples (" in found[0][1]
    assert f"{path}: checkpoint written after 15 examples (" in found[1][1]
    assert found[2][1] == f"{path}: the run continues after 15 examples"
    found = lines(caplog, "streamsvm.run.bad_events")
    reason = "cannot be used (bad feature): feature 'a' is inf: not a finite number"
    assert found == [
        ("WARNING" if row == 2 else "DEBUG", f"row {row} {reason}") for row in (2, 5, 8, 11, 14)
    ]
    letters = f"dead letters go to {path}.dead_letters.jsonl"
    assert lines(caplog, "streamsvm.run.letter_file") == [("INFO", letters)]


def test_rebalances(caplog):
    caplog.set_level(logging.INFO, "connectors")
    consumer = Confluent({0: [], 1: []}, committed={0: 7})
    source = KafkaSource(consumer, "label", topics=["t"], idle=0.01, timeout=0.01, name="orders")
    list(source.batches())
    source._revoked(consumer, [Partition("t", 1)])
    source._lost(consumer, [Partition("t", 0)])
    assert lines(caplog, "connectors.kafka.kafka_source")[-3:] == [
        ("INFO", "orders: partitions assigned: t[0] at 7, t[1] at its start"),
        ("INFO", "orders: partitions revoked: t[1] at its start"),
        ("WARNING", "orders: partitions lost: t[0] at 7"),
    ]


def test_compiling(caplog, monkeypatch):
    caplog.set_level(logging.DEBUG, "streamsvm")
    monkeypatch.setattr(clock, "_has_warned", False)
    monkeypatch.setattr(clock, "functions", 0)
    clock.miss(None)
    clock.compiled("step")
    (first, second) = lines(caplog, "streamsvm._compiling")
    assert first[0] == "WARNING" and first[1].startswith("compiling for this machine")
    assert second == ("DEBUG", "compiled step")


PROGRAM = """
import logging, sys
if "set up" in sys.argv:
    logging.basicConfig(level=logging.INFO)
from connectors import MemorySource
from streamsvm._compiling import clock
from streamsvm.run.bad_events import BadEvents
clock.miss(None)
event = next(MemorySource([({"a": 1.0}, True)]).events())
BadEvents("skip").take(event, "kind", "reason")
logging.getLogger("connectors.kafka.kafka_source").warning("lost")
"""


@pytest.mark.parametrize("argument", ["", "set up"])
def test_nothing_is_printed_by_default(argument):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, argument], capture_output=True, text=True, check=True
    )
    assert not done.stdout
    expected = [
        "WARNING:streamsvm._compiling:compiling for this machine",
        "WARNING:streamsvm.run.bad_events:row 0 cannot be used (kind): reason",
        "WARNING:connectors.kafka.kafka_source:lost",
    ]
    found = done.stderr.splitlines()
    assert len(found) == (3 if argument else 0)
    for line, start in zip(found, expected, strict=False):
        assert line.startswith(start)
