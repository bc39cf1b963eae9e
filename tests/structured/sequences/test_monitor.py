"""A monitor of learners of label sequences: gaps, certificate, accuracy, copies."""

import copy

import numpy as np
import pytest
from river import metrics

import streamsvm
from streamsvm import Chain, LaRankSequenceLabeler, SequencePA, TrackingMonitor
from streamsvm.errors import ParameterError
from streamsvm.monitor.certificate import Looks
from streamsvm.structured.sequences import exact, greedy
from streamsvm.structured.sequences.pairs import new_scratch
from tests.structured.examples import X as SENTENCES
from tests.structured.examples import Y, chunks, flat

both = pytest.mark.parametrize("inference", ["greedy", "exact"])


def normalised(model):
    gap = model.kept_gap()
    return gap.total / gap.cost


@both
def test_the_looks_estimate_and_bound_the_mean_gap(inference):
    X, y = chunks(60, seed=3)
    seen, truth = [], []
    for seed in range(12):
        model, gaps = LaRankSequenceLabeler(inference, seed=seed, class_weight={"B": 3.0}), []
        model.solver.model.look_draws[:] = seed + 1
        for tokens, labels in zip(X, y, strict=True):
            model.learn_one(tokens, labels)
            gaps.append(normalised(model))
            assert model.looks.bound() >= np.mean(gaps)
        seen.append(model.looks.mean)
        truth.append(np.mean(gaps))
        assert model.looks.n == len(X)
    # Twelve means of sixty looks each.
    error = np.std(np.subtract(seen, truth)) / np.sqrt(len(seen))
    assert np.mean(seen) == pytest.approx(np.mean(truth), abs=4 * error)
    assert error < 0.1 * np.mean(truth)


@both
def test_no_part_is_above_its_bound(inference):
    model = LaRankSequenceLabeler(inference, C=5.0, class_weight={"B": 3.0}, seed=1)
    for tokens, labels in zip(SENTENCES, Y, strict=True):
        model.learn_one(tokens, labels)
        m, p, info = model.solver.model, model.solver.patterns, model.solver.model.info[0]
        bound = info.loss_most + info.reach * np.sqrt(info.square_norm)
        for slot in p.active.members[: p.active.counts[0].n_members]:
            if inference == "greedy":
                scores = np.zeros(m.weights.shape[1], np.float32)
                part = greedy.part_of_pattern(m, p, model.order_, slot, 3, scores)
            else:
                scratch = new_scratch(10, *m.weights.shape)
                part = exact.part_of_pattern(m, p, model.order_, slot, 3, scratch)
            assert -1e-6 <= part / p.cost[slot] <= bound


@both
@pytest.mark.parametrize("bounds", [{}, {"window": 30}, {"max_support_patterns": 10}])
def test_a_monitor_follows_a_labeler(inference, bounds):
    model = LaRankSequenceLabeler(inference, seed=1, **bounds)
    monitor = TrackingMonitor(model, every=50, metrics=metrics.MacroF1())
    plain = LaRankSequenceLabeler(inference, seed=1, **bounds)
    predicted = plain.predict_then_learn_many(SENTENCES, Y)
    monitor.learn_many(SENTENCES[:20], Y[:20])
    for tokens, labels in zip(SENTENCES[20:], Y[20:], strict=True):
        monitor.learn_one(tokens, labels)
    values = monitor.get()
    assert values["n_examples"] == len(flat(Y)) and values["dual"] == plain.dual
    # Nothing is predicted before the first labels.
    right = [a == b for a, b in zip(flat(Y), flat(predicted), strict=True) if b is not None]
    assert values["accuracy"] == np.mean(right)
    assert values["gap"] == values["kept_gap"] == normalised(plain)
    assert values["n_support_vectors"] == model.n_support_vectors
    assert values["n_free"] + values["n_bounded"] == values["n_support_vectors"]
    assert 0.0 < values["seen_gap"] < values["certificate"]
    assert values["kappa"] == model.kappa and values["memory_bytes"] == model.memory_usage
    assert 3 <= len(monitor.history) <= len(flat(Y)) // 50
    assert "of the support patterns" in monitor.certificate_reason
    assert "averaged_gap" in monitor.report()


@both
def test_coefficients_at_their_bounds_are_counted(inference):
    model = LaRankSequenceLabeler(inference, C=0.001, seed=1)
    monitor = TrackingMonitor(model)
    monitor.learn_many(SENTENCES, Y)
    assert monitor.get()["n_bounded"] >= model.n_support_patterns // 2


def test_copies_and_pipelines_are_watched_apart():
    model = Chain(window=1) | LaRankSequenceLabeler(seed=1)
    monitor = TrackingMonitor(model, every=10)
    words = [[t["w"] for t in tokens] for tokens in SENTENCES]
    monitor.learn_many(words, Y)
    learner = model["LaRankSequenceLabeler"]
    assert copy.deepcopy(learner).observer is None
    n = monitor.get()["n_examples"]
    learner.clone(include_attributes=True).learn_one(["a"], ["B"])
    assert monitor.get()["n_examples"] == n == len(flat(Y))
    copied = copy.deepcopy(monitor)
    copied.learn_one(["a"], ["B"])
    assert (copied.get()["n_examples"], monitor.get()["n_examples"]) == (n + 1, n)


def test_files_keep_the_looks(tmp_path):
    for inference in ("greedy", "exact"):
        model = LaRankSequenceLabeler(inference, seed=1)
        model.learn_many(SENTENCES[:20], Y[:20])
        model.save(tmp_path / "m.svm")
        loaded = streamsvm.load(tmp_path / "m.svm")
        assert loaded.looks == model.looks != Looks()
        for one in (model, loaded):
            one.learn_many(SENTENCES[20:], Y[20:])
        assert loaded.looks.n == model.looks.n
        assert loaded.looks.mean == pytest.approx(model.looks.mean, rel=1e-4)


def test_what_cannot_be_followed_is_said():
    with pytest.raises(ParameterError, match="SequencePA keeps no examples"):
        TrackingMonitor(SequencePA())
    with pytest.raises(ParameterError, match="has no probabilities"):
        TrackingMonitor(LaRankSequenceLabeler(), metrics=metrics.LogLoss())
    empty = TrackingMonitor(LaRankSequenceLabeler(seed=1))
    empty.learn_one([], [])
    values = empty.get()
    assert values["n_examples"] == 0 and values["certificate"] is None
    assert "no support pattern was looked at" in empty.certificate_reason
