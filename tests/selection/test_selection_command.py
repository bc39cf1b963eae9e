"""`--selection` and `--label-budget` of the commands."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamsvm
from streamsvm import ActiveLearner
from streamsvm.cli.main import main
from streamsvm.selection import Active, AutoActive, Random


@pytest.fixture(autouse=True)
def _file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a, b = np.random.default_rng(0).normal(size=(2, 600))
    pq.write_table(pa.table({"a": a, "b": b, "y": a * b > 0}), "data.parquet")


def replay(*arguments):
    return main(["replay", "data.parquet", "--target", "y", "--save", "m.svm", *arguments])


@pytest.mark.parametrize(
    ("options", "learner", "selection"),
    [
        (("--selection", "active"), streamsvm.LASVMClassifier, Active()),
        (
            ("--learner", "sgd", "--selection", "active", "--candidates", "9", "--share", ".5"),
            streamsvm.SVMSGDClassifier,
            Active(candidates=9, share=0.5),
        ),
        (("--selection", "autoactive"), streamsvm.LASVMClassifier, AutoActive()),
        (
            ("--learner", "sgd", "--selection", "random", "--seed", "7"),
            streamsvm.SVMSGDClassifier,
            Random(seed=7),
        ),
    ],
)
def test_the_options_choose_the_selection(options, learner, selection, capsys):
    assert replay(*options) == 0
    model = streamsvm.load("m.svm")
    cls, learner = learner, model if hasattr(model, "waiting") else [*model.steps.values()][-1]
    assert type(learner) is cls and learner.selection == selection
    assert learner.waiting.n_seen == 600
    assert 10 < learner.waiting.n_taken < 400
    out = capsys.readouterr().out
    assert f"{learner.waiting.n_taken:,} of 600 examples were learnt: {selection!r}" in out


def test_epochs_choose_among_what_was_not_learnt(capsys):
    assert replay("--selection", "active", "--epochs", "3") == 0
    model = streamsvm.load("m.svm")
    assert 120 < model.waiting.n_taken < 300
    assert len(set(model.support_vectors().entered.tolist())) == model.n_support_vectors


CONSUME = ("consume", "--brokers", "none:1", "--topic", "a", "--target", "y")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--label-strategy", "random"), "--label-strategy: only with --label-budget"),
        (("--label-budget", "1.5"), "budget=1.5"),
        (("--label-budget", ".1", "--epochs", "2"), "reads a stream once"),
        ((*CONSUME, "--label-budget", ".1", "--labels-topic", "b"), "name --questions-topic"),
        ((*CONSUME, "--questions-topic", "q"), "--questions-topic needs --labels-topic"),
        ((*CONSUME, "--questions-topic", "q", "--labels-topic", "b"), "and --label-budget"),
        (
            (*CONSUME, "--label-budget", ".1", "--questions-topic", "b", "--labels-topic", "b"),
            "it is read from, too",
        ),
        (("--share", ".2"), "--share: only with --selection"),
        (("--selection", "autoactive", "--share", ".2"), "not for --selection autoactive"),
        (("--learner", "adaptive", "--selection", "active"), "not for --learner adaptive"),
        (("--selection", "active", "--share", "3"), "share=3.0"),
        (("--candidates", "9"), "--candidates: only with --selection"),
    ],
)
def test_wrong_options_are_refused(options, reason, capsys):
    assert (main(options) if options[0] == "consume" else replay(*options)) != 0
    assert reason in capsys.readouterr().err
    assert not Path("m.svm").exists()


def test_an_interrupted_run_goes_on_with_its_candidates():
    options = ("--selection", "active", "--checkpoint", "c.ckpt")
    assert replay(*options, "--limit", "250") == 0
    assert replay(*options) == 0
    resumed = streamsvm.load("m.svm")
    assert main(["replay", "data.parquet", "--target", "y", "--save", "w.svm", *options[:2]]) == 0
    whole = streamsvm.load("w.svm")
    assert resumed.waiting.n_taken == whole.waiting.n_taken
    x = {"a": 0.3, "b": -0.2}
    assert resumed.decision_function_one(x) == whole.decision_function_one(x)


def test_the_command_asks_for_a_share_of_the_labels(capsys):
    for options in ((), ("--label-delay", "20"), ("--label-strategy", "random")):
        assert replay("--label-budget", ".1", *options) == 0
        out = capsys.readouterr().out
        model = streamsvm.load("m.svm")
        assert type(model) is ActiveLearner
        assert model.n_seen == 600
        assert 45 < model.n_answered < 100
        assert f"{model.n_asked:,} asked for" in out
    assert model.strategy == "random"
    assert main(["predict", "m.svm", "data.parquet", "--target", "y"]) == 0
    assert "test error" in capsys.readouterr().out
    # It goes on with the file, and its budget.
    assert replay("--model", "m.svm", "--json") == 0
    assert json.loads(capsys.readouterr().out)["asked"]["events"] == 1200
