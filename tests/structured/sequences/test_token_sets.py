"""ConformalSets of label sequences: all labellings, the twin, events and batches, runs."""

import copy
import csv
import json
import math
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamsvm
from connectors import SentenceSource
from streamsvm import (
    Chain,
    ConformalSets,
    LaRankSequenceLabeler,
    SequencePA,
    StandardScaler,
    TrackingMonitor,
)
from streamsvm.cli.main import main
from streamsvm.errors import LabelError, ParameterError
from streamsvm.labels.token_sets import Margins, TokenSets
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from tests.reference import slow_conformal


def sentences(n, seed=1):
    """Return words and labels: a word mostly tells its label; label C comes late, and is rare."""
    draw, words, labels = np.random.default_rng(seed), [], []
    for i in range(n):
        codes = draw.integers(3, size=draw.integers(1, 7))
        codes[draw.random(codes.size) < 0.05 * (i > n // 3)] = 3
        noisy = np.where(draw.random(codes.size) < 0.25, draw.integers(4, size=codes.size), codes)
        words.append([f"w{c}{draw.integers(3)}" for c in noisy])
        labels.append(["OBIC"[c] for c in codes])
    return words, labels


X, Y = sentences(300)


@pytest.mark.parametrize("inference", ["exact", "greedy"])
def test_scores_are_those_of_all_labellings(inference):
    model = SequencePA(inference, order=1, averaged=False)
    model.learn_many(X[:60], Y[:60])
    moves = model.solver.model.moves[0]
    for x in X[60:75]:
        # The score of a token alone, from sentences of one token: less its move after nothing.
        n, alone = len(model.classes), []
        for word in x:
            (scores,) = model.decision_function_one([word])
            alone.append([s - moves[0, c] for c, s in enumerate(scores.values())])
        found = [list(one.values()) for one in model.decision_function_one(x)]
        if inference == "exact":
            total = {
                s: sum(
                    alone[t][c] + moves[0 if t == 0 else s[t - 1] + 1, c] for t, c in enumerate(s)
                )
                for s in product(range(n), repeat=len(x))
            }
            wanted = [
                [max(v for s, v in total.items() if s[t] == c) for c in range(n)]
                for t in range(len(x))
            ]
        else:  # after the labels that were predicted before
            codes = [0, *(1 + model.classes.index(y) for y in model.predict_one(x))]
            wanted = [[alone[t][c] + moves[codes[t], c] for c in range(n)] for t in range(len(x))]
        np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.parametrize("by_class", [False, True])
def test_sets_are_those_of_the_twin(by_class):
    draw = np.random.default_rng(2)
    stream = [
        [
            # Label 9 is one that the model never knows.
            (dict(enumerate(draw.normal(size=3))), 9 if draw.random() < 0.02 else int(i % 3))
            for i in range(draw.integers(0, 8))
        ]
        for _ in range(200)
    ]
    sets, found = TokenSets(0.8, by_class), []
    for sentence in stream:
        margins = Margins.of([scores for scores, _ in sentence])
        given = sets.of(margins)
        found += given
        sets.learn([y for _, y in sentence], margins, given)
    assert [set(one) for one in found] == slow_conformal.token_sets_of(stream, 0.8, by_class)
    n = sum(map(len, stream))
    assert sets.n == n == len(found) == len(sets.lately) < 1000
    assert sets.n_missed == sum(sets.lately)
    assert sets.size == sum(map(len, found))
    again = TokenSets.from_json(sets.as_json())
    assert again.as_json() == sets.as_json() and again.figures() == sets.figures()


def by_hand(model):
    """Return the sets of a loop of events, each of which is predicted first."""
    found = []
    for x, y in zip(X, Y, strict=True):
        found += model.predict_set_one(x)
        model.learn_one(x, iter(y))
    return found


def test_events_batches_copies_files_and_runs_are_one(tmp_path):
    def make(columns=None):
        model = Chain(window=1, columns=columns) | LaRankSequenceLabeler("exact", seed=1)
        return ConformalSets(model, 0.8, by_class=True)

    events, batches, run = make(), make(), make("word")
    found, labels = by_hand(events), [y for own in Y for y in own]
    assert sum(y in one for y, one in zip(labels, found, strict=True)) == len(labels) - (
        events.sets.n_missed
    )
    assert sum(map(len, found)) > len(set(labels)) and max(map(len, found)) > 1
    # The bound of each label, wider by the longest sentence.
    assert events.sets.n_missed < 0.2 * len(labels) + 4 * (17 + 6) + events.sets.n_new
    assert events.sets.figures()["coverage_least"] <= events.sets.figures()["coverage"]
    batches.learn_many(X[:150], Y[:150])
    batches = copy.deepcopy(batches)
    batches.learn_many(pa.array(X[150:]), pa.array(Y[150:]))
    streamsvm.save(events, tmp_path / "m.svm")
    pq.write_table(pa.table({"word": X, "y": Y}), tmp_path / "x.parquet")
    monitor = TrackingMonitor(run)
    for limit in (120, None):  # goes on from the checkpoint
        with SentenceSource(tmp_path / "x.parquet", ["word"], "y") as source:
            last = Run(
                source, monitor if limit is None else copy.deepcopy(monitor), limit=limit,
                checkpoint=Checkpoint(tmp_path / "c.ckpt"),
            ).execute()  # fmt: skip
    assert last.learnt == 300 and last.coverage == events.sets.figures()
    assert monitor.get()["coverage"] == events.sets.figures()["coverage"]
    fresh, _ = sentences(30, seed=2)
    wanted = events.predict_set_many(fresh)
    for model in (batches, streamsvm.load(tmp_path / "m.svm"), run):
        assert model.sets.as_json() == events.sets.as_json()
        assert model.predict_set_many(fresh) == wanted
    with SentenceSource(tmp_path / "x.parquet", ["word"], "y") as source:
        with pytest.raises(ParameterError, match="once"):
            Run(source, run, epochs=2)


def test_what_was_given_counts_and_what_is_refused_does_not():
    model = ConformalSets(SequencePA(), 0.9)
    assert model.predict_set_one(["a", "b"]) == ((), ())
    model.learn_one(["a", "b"], ["A", "A"])
    # All tokens of the sentence were predicted before its labels came.
    assert model.sets.n_missed == model.sets.n_new == 2
    assert model.predict_set_one([]) == ()
    model.learn_one([], [])
    before = model.sets.as_json()
    with pytest.raises(LabelError):
        model.learn_one(["a", "b"], ["A"])
    with pytest.raises(ParameterError):
        model.learn_one(["a", "b"], ["A", "A"], given=[("A",)])
    assert model.sets.as_json() == before
    model.learn_one(["a", "b"], ["A", "A"], given=[("A",), ()])
    assert model.sets.n_missed == 3
    for given in ({"score": "adaptive"}, {"coverage": 0}):
        with pytest.raises(ParameterError):
            ConformalSets(SequencePA(), **given)
    with pytest.raises(ParameterError, match="Chain"):
        ConformalSets(StandardScaler() | SequencePA())
    # One that is never empty has at least the label that is predicted.
    full = ConformalSets(SequencePA(), 0.3, may_be_empty=False)
    by_hand(full)
    assert full.sets.n_empty == sum(map(len, X[:1]))
    assert [one[0] for one in full.predict_set_one(X[0])] == full.predict_one(X[0])
    assert math.isfinite(full.sets.thresholds()[0].level)


def test_the_command_writes_sets_of_tokens(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"word": X, "y": Y}), "x.parquet")
    command = ["replay", "x.parquet", "--target", "y", "--columns", "word", "--quiet"]
    command += ["--learner", "sequence_larank", "--coverage", ".8", "--save", "m.svm", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)["coverage"]
    assert 0.75 < found["coverage"] < 0.83
    assert main(["predict", "m.svm", "x.parquet", "-o", "p.parquet", "--target", "y"]) == 0
    assert "test error" in capsys.readouterr().out
    table, model = pq.read_table("p.parquet"), streamsvm.load("m.svm")
    assert [tuple(map(tuple, one)) for one in table["set"].to_pylist()] == model.predict_set_many(X)
    assert table["prediction"].to_pylist() == [model.predict_one(x) for x in X]
    assert main(["predict", "m.svm", "x.parquet", "-o", "p.csv"]) == 0
    with open("p.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for name in ("prediction", "set"):
        assert [json.loads(row[name]) for row in rows] == table[name].to_pylist()
