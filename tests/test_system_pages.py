"""What examples of the systems' pages and the index print, for `test_docs`; and their tables."""

import inspect
import re
from pathlib import Path

import pytest

import streamsvm

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "systems"
PAGES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.md"))}
# What the last block of Python of each page prints by itself.
PRINTED = {
    "adaptive": r"LASVMClassifier: 9\d\.\d%\nAdaptiveSVMClassifier: 9\d\.\d%; drifts: 1, the last",
    "ambiguous": r"right: 9\d.*\nmean loss 0\.\d+, .*\nkernel: right 9\d.*",
    "concepts": r"(9\d|100) of 100 right; concepts 12, relations \['location'\]",
    "huller": r"(epoch \d+: \d+ support vectors, distance 0\.\d+\n){3}$",
    "incremental": r"leave-one-out error \d+.*\n[89] of the ten .*\n380 examples are left, .* 6\.",
    "index": r"Accuracy: (8|9)",
    "larank": r"Accuracy: 9.*of 7 classes\n\d+ support patterns\n\{.*sky.*\}",
    "larank_sequences": r"\['DET', 'NOUN', 'VERB'\]\n\d+ support patterns, dual .*\ngap .* 0\.0",
    "lasvm": r"Accuracy: .*\n\d+ support vectors, delta .*\nafter finish: delta 0\.00",
    "ospas": r"\('pass', 'pink4', 'pink7'\)\n\[None, 'pink4', .*'pink7'\]\n.*'A0'.*'REL'.*'A1'",
    "perceptron": r"(Kernel\w+ Accuracy: 8\d.* with \d+ support vectors\n){3}$",
    "sbp": r"Accuracy: \d+.* while learning\nlevel 0\.\d+, \d+ of 1000 examples\n$",
    "sgd": r"Accuracy: 8.*\n\[\('.*rate ",
    "sgdqn": r"SVMSGDClassifier objective .*\nSGDQNClassifier objective ",
    "tracking": r"mean gap, estimated: 0\.\d+\ncertificate: +0\.\d+ of the examples kept",
}


def test_every_system_has_a_page():
    assert {*PAGES, "index"} == set(PRINTED)


@pytest.mark.parametrize("name", PAGES)
def test_parameters_and_their_defaults_are_those_of_the_class(name):
    learner = getattr(streamsvm, re.match(r"# .*: `(\w+)`", PAGES[name])[1])
    own = inspect.signature(learner).parameters
    table = PAGES[name].partition("## Parameters that matter")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", table, re.MULTILINE)
    assert rows
    for names, defaults in rows:
        stated = [re.split(r"[:,]", text)[0].strip('" ') for text in defaults.split(";")]
        names = re.findall(r"`(\w+)`", names)
        for parameter, default in zip(names, stated * len(names), strict=False):
            value = own[parameter].default
            assert str(value) == default or value == _number(default), (parameter, default)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
