"""Greedy LaRank with a kernel: with a linear one it is the learner with weights; and invariants."""

import numpy as np
import pytest

from streamsvm import LaRankSequenceLabeler, kernels
from tests.structured.sequences.problems import sentences


def pairs_of(seed, n=40):
    return [(x, list(map(str, y))) for x, y in sentences(seed, n=n)]


def learnt(pairs, **params):
    model = LaRankSequenceLabeler(seed=1, **params)
    for x, y in pairs:
        model.learn_one(x, y)
    return model


def scores_by_definition(model, words):
    """Return the scores at true pasts of all tokens, from rows, coefficients and pasts."""
    p, n = model.solver.patterns, len(model.classes)
    slots = p.active.members[: p.active.counts[0].n_members]
    panels = p.store.panels.transpose(0, 2, 1).reshape(-1, p.store.panels.shape[1])
    numbers = {label: i for i, label in enumerate(model.classes)}
    for x, y in words:
        codes = [numbers[label] for label in y]
        for t, row in enumerate(x):
            past = [codes[t - 1 - s] + 1 if t > s else 0 for s in range(model.order_)]
            total = np.zeros(n)
            for slot in slots:
                k = kernels.evaluate(model.kernel, panels[slot, : len(row)], row)
                total += p.beta[slot, :n] * (k + (p.past[slot] == past).sum())
            yield codes[t], total


@pytest.mark.parametrize("order", [0, 2])
@pytest.mark.parametrize("C", [0.001, 0.5])
def test_a_linear_kernel_is_the_learner_with_weights(order, C):
    pairs, more = pairs_of(order), {} if C < 0.1 else {"reprocess": 0}
    weights = learnt(pairs, order=order, C=C, **more)
    kernel = learnt(pairs, order=order, C=C, kernel=kernels.Linear(), **more)
    assert kernel.dual == pytest.approx(weights.dual, rel=1e-4)
    assert kernel.n_support_patterns == weights.n_support_patterns
    for x, _ in pairs_of(99, 10):
        wanted = [list(row.values()) for row in weights.decision_function_one(x)]
        found = [list(row.values()) for row in kernel.decision_function_one(x)]
        assert np.array(found) == pytest.approx(np.array(wanted), abs=1e-4)


@pytest.mark.parametrize("bounds", [{}, {"window": 25}, {"max_support_patterns": 12}])
def test_f_norm_dual_and_gap_are_those_of_the_coefficients(bounds):
    pairs = pairs_of(3)
    model = learnt(pairs, order=2, C=2.0, kernel=kernels.RBF(gamma=0.3), cache_mb=0.01, **bounds)
    p, n = model.solver.patterns, len(model.classes)
    slots = p.active.members[: p.active.counts[0].n_members]
    assert not bounds or model.counters["n_forgotten"] > 5
    panels = p.store.panels.transpose(0, 2, 1).reshape(-1, p.store.panels.shape[1])
    gram = np.array(
        [[kernels.evaluate(model.kernel, panels[a], panels[b]) for b in slots] for a in slots]
    )
    assert p.f[:n, slots].T == pytest.approx(gram @ p.beta[slots, :n], abs=1e-4)
    joint = gram + (p.past[slots][:, None] == p.past[slots][None]).sum(2)
    beta = p.beta[slots, :n]
    square = np.einsum("ac,ab,bc", beta, joint, beta)
    assert model.solver.model.info[0].square_norm == pytest.approx(square, rel=1e-4)
    own = beta[np.arange(len(slots)), p.label[slots]]
    assert model.dual == pytest.approx(own.sum() - 0.5 * square, rel=1e-4)
    assert np.abs(beta.sum(1)).max() < 1e-9 and own.max() <= 2.0 + 1e-9
    scores = joint @ beta + 1.0
    scores[np.arange(len(slots)), p.label[slots]] -= 1.0
    h = scores - scores[np.arange(len(slots)), p.label[slots]][:, None]
    gap = (2.0 * h.max(1) + (beta * h).sum(1)).sum()
    assert model.kept_gap().total == pytest.approx(gap, rel=1e-4)


def test_finish_closes_the_gap_and_the_dual_rises():
    model = learnt(pairs_of(5), C=1.0, kernel=kernels.RBF(gamma=0.3))
    before = model.dual
    assert model.finish(gap=0.01) <= 0.01 and model.dual > before
    with pytest.raises(Exception, match="not with a kernel"):
        model.finish([np.zeros((1, 4))], [["0"]])


def test_scores_are_those_of_the_definition():
    pairs = pairs_of(7)
    model = learnt(pairs, order=1, C=1.0, kernel=kernels.Polynomial())
    fresh = pairs_of(8, 5)
    for x, _ in fresh:
        # Predicted labels are the pasts here.
        y = model.predict_one(x)
        rows = [list(row.values()) for row in model.decision_function_one(x)]
        wanted = [total for _, total in scores_by_definition(model, [(x, y)])]
        assert np.array(rows) == pytest.approx(np.array(wanted), rel=1e-3, abs=1e-3)


def test_what_a_kernel_cannot_do_is_said():
    rbf = kernels.RBF(gamma=1.0)
    with pytest.raises(Exception, match="only with inference='greedy'"):
        LaRankSequenceLabeler("exact", kernel=rbf)
    with pytest.raises(Exception, match="not a registered kernel"):
        LaRankSequenceLabeler(kernel="rbf")
    with pytest.raises(Exception, match="cache_mb"):
        LaRankSequenceLabeler(kernel=rbf, cache_mb=0.0)
    model = LaRankSequenceLabeler(kernel=rbf, max_features=3)
    model.learn_one([["a", "b", "c", "d"]], ["x"])
    assert model.n_features == 3 and model.counters["features_ignored"] == 1
