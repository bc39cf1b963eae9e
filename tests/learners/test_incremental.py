"""The exact SVM as a classifier: what is taken back was never learnt, and what it tells is so."""

import copy
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from river import datasets

from streamsvm import IncrementalSVMClassifier, TrackingMonitor, kernels
from streamsvm.errors import FeatureError, LabelError, ParameterError
from streamsvm.model_files import codec
from tests.interruptions import interrupted

RBF = kernels.RBF(gamma=0.5)


def bananas(n):
    return list(datasets.Bananas().take(n))


def learnt(events, **parameters):
    model = IncrementalSVMClassifier(**{"kernel": RBF} | parameters)
    for x, y in events:
        model.learn_one(x, y)
    return model


def alike(a, b, events):
    assert a.dual == pytest.approx(b.dual, rel=1e-9)
    found = [[m.decision_function_one(x) for x, _ in events[:50]] for m in (a, b)]
    np.testing.assert_allclose(*found, atol=1e-7)


def is_wide(x, y):
    return x["1"] > 0.5 and y


def set_costs(model):
    for C in (10.0, 0.2, 100.0):
        model.set_C(C)


ALL, GONE = range(1, 201), range(1, 200, 3)
SOME = {*ALL} - {*GONE}
NOT_WIDE = [n for n, event in enumerate(bananas(200), 1) if not is_wide(*event)]
# The parameters, a change, which examples are kept then, and with which parameters.
SOLUTIONS = {
    "as they came": ({}, lambda model: None, ALL, {}),
    "a window": ({"window": 60}, lambda model: None, range(141, 201), {"window": None}),
    "forgotten": ({}, lambda model: model.forget(is_wide), NOT_WIDE, {}),
    "costs": ({}, set_costs, ALL, {"C": 100.0}),
    **{
        f"taken back of C {C}": ({"C": C}, lambda model: model.unlearn_many(GONE[::-1]), SOME, {})
        for C in (0.1, 1.0, 100.0)
    },
    **{
        f"another kernel of {kernel.gamma}": (
            {"C": 10.0},
            lambda model, kernel=kernel: model.set_kernel(kernel),
            ALL,
            {"kernel": kernel},
        )
        for kernel in (kernels.RBF(gamma=0.01), kernels.RBF(gamma=0.3), kernels.RBF(gamma=20.0))
    },
}


@pytest.mark.parametrize("name", SOLUTIONS)
def test_it_is_the_solution_of_the_examples_that_are_kept(name):
    parameters, change, kept, other = SOLUTIONS[name]
    events = bananas(200)
    model = learnt(events, **parameters)
    change(model)
    assert sorted(model.kept_numbers().tolist()) == sorted(kept)
    assert (model.n_kept, model.n_examples) == (len(kept), 200)
    fresh = learnt([events[n - 1] for n in sorted(kept)], **parameters | other)
    alike(model, fresh, events)
    assert (model.C, model.kernel, model.kernel_) == (fresh.C, fresh.kernel, fresh.kernel_)
    assert model.delta < 1e-6 and model.duality_gap() < 1e-9


def test_what_is_refused_changes_nothing():
    model = learnt(bananas(50))
    model.unlearn_one(7)
    before = facts_of(model)
    for error, words, call in (
        (ParameterError, "ids 51, 99", lambda: model.unlearn_many([3, 51, 99])),
        (ParameterError, "no such example is kept", lambda: model.unlearn_one(7)),
        (ParameterError, "C=", lambda: model.set_C(0.0)),
        (ParameterError, "kernel", lambda: model.set_kernel("rbf")),
        (LabelError, "third class", lambda: model.learn_one({"1": 0.0}, "other")),
    ):
        with pytest.raises(error, match=words):
            call()
        assert facts_of(model) == before
    x = np.random.default_rng(19).normal(size=(40, 2)) * [1.0, 300.0]
    model = IncrementalSVMClassifier(kernels.Polynomial(degree=2), C=10.0)
    with pytest.raises(FeatureError, match="too few digits.*StandardScaler"):
        model.learn_many(x, x[:, 0] > 0)
    assert model.n_kept == 0


def test_weights_count_as_so_many_examples():
    events = bananas(80)
    model = IncrementalSVMClassifier(RBF)
    twice = IncrementalSVMClassifier(RBF)
    for n, (x, y) in enumerate(events):
        model.learn_one(x, y, w=2.0 if n % 3 == 0 else 1.0)
        for _ in range(2 if n % 3 == 0 else 1):
            twice.learn_one(x, y)
    assert model.dual == pytest.approx(twice.dual, rel=1e-9)
    model.learn_one(*events[0], w=0.0)
    assert model.n_kept == 80
    balanced = learnt(events, class_weight="balanced")
    counts = [sum(y == label for _, y in events[:64]) for label in (False, True)]
    factors = {label: 64 / (2 * n) for label, n in zip((False, True), counts, strict=True)}
    given = learnt(events[:64], class_weight=factors)
    alike(learnt(events[:64], class_weight="balanced"), given, events)
    assert balanced.delta < 1e-6


def test_leave_one_out_is_what_fitting_again_gives():
    events = bananas(120)
    model = learnt(events, C=10.0)
    found = model.leave_one_out()
    for n in (1, 17, 50, 119):
        x, y = events[n - 1]
        others = learnt([e for i, e in enumerate(events, 1) if i != n], C=10.0)
        margin = others.decision_function_one(x) * (1 if y else -1)
        assert found.margins[found.ids == n] == pytest.approx(margin, abs=1e-7)
    assert found.error == pytest.approx(np.mean(found.margins <= 0), abs=0.01)
    estimated = model.leave_one_out(estimate=True)
    assert abs(estimated.error - found.error) < 0.05
    assert np.abs(estimated.margins - found.margins).mean() < 0.5


def test_influence_finds_wrong_labels():
    events = bananas(300)
    wrong = list(range(10, 300, 30))
    turned = [(x, (not y) if n in wrong else y) for n, (x, y) in enumerate(events, 1)]
    model = learnt(turned, C=10.0)
    influence = model.influence()
    assert len(influence) == model.n_support_vectors
    suspects = sorted(influence, key=lambda n: influence[n].margin_without)[:40]
    assert len(set(suspects) & set(wrong)) >= 8
    one = model.influence([wrong[0]])[wrong[0]]
    assert one == influence[wrong[0]]
    before = model.dual
    model.unlearn_one(wrong[0])
    assert before - model.dual == pytest.approx(one.objective, rel=0.3)
    with pytest.raises(ParameterError, match="ids 9999: no such"):
        model.influence([9999])
    free = next(n for n in range(1, 301) if n not in influence)
    assert model.influence([free])[free].objective == 0.0


def test_gamma_follows_the_data_until_1024_examples():
    events = bananas(300)
    model = IncrementalSVMClassifier()
    for x, y in events:
        model.learn_one(x, y)
    kernel = model.kernel_
    variance = np.var([list(x.values()) for x, _ in events[:256]], axis=0).sum()
    assert kernel.gamma == pytest.approx(1 / variance, rel=0.06)
    alike(model, learnt(events, kernel=kernel), events)


def test_ids_that_come_again_are_not_added_again():
    events = bananas(96)
    rows, y = pa.RecordBatch.from_pylist([x for x, _ in events]), [y for _, y in events]
    model = IncrementalSVMClassifier(RBF)
    # Known, whatever the count of examples is; and events without ids get others.
    model.learn_many(rows[:4], y[:4], ids=[2, 2, 4, 4])
    assert sorted(model.kept_numbers().tolist()) == [2, 4] and model.n_examples == 4
    model.learn_one(*events[4])
    model.learn_many(rows[5:6], y[5:6], ids=[7])
    model.learn_one(*events[0])
    assert model.n_kept == 5 and model.n_examples == 7
    ids = np.arange(1000, 1090)
    model.learn_many(rows[6:], y[6:], ids=ids)
    before = model.dual
    model.learn_many(rows[6:], y[6:], ids=ids)
    assert (model.n_kept, model.n_examples, model.dual) == (95, 187, before)
    model.unlearn_many(ids[:10])
    assert {*range(1010, 1090)} == {*model.kept_numbers().tolist()} & {*range(1000, 1090)}


CHANGES = {
    "cost": lambda model: model.set_C(50.0),
    "kernel": lambda model: model.set_kernel(kernels.RBF(gamma=5.0)),
    "fewer": lambda model: model.unlearn_many(range(1, 30)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_interruption_at_any_line_changes_all_or_nothing(change):
    plain, n_hits = learnt(bananas(40)), 0
    changed = copy.deepcopy(plain)
    CHANGES[change](changed)
    for k in range(1, 60):
        model = copy.deepcopy(plain)
        n_hits += interrupted(partial(CHANGES[change], model), k, is_change)
        wanted = changed if model.dual == changed.dual else plain
        assert facts_of(model) == facts_of(wanted)
    assert n_hits


def facts_of(model):
    return model.dual, model.C, model.n_kept, model.model.follows_rule, repr(model.kernel)


def is_change(code):
    return code.co_filename.endswith(("cost_changes.py", "exact_learner.py"))


def is_ours(code):
    return code.co_filename.endswith(("exact.py", "kept.py", "exact_learner.py", "incremental.py"))


@pytest.mark.parametrize("parameters", [{}, {"window": 30}, {"cache_mb": 0.0, "C": 10.0}])
def test_an_interruption_at_any_line_loses_and_doubles_nothing(parameters):
    events = bananas(60)
    plain = learnt(events[:40], **parameters)
    n_hits = 0
    for k in range(1, 1200, 23):
        model = copy.deepcopy(plain)

        def learn_two(model=model):
            for x, y in events[40:42]:
                model.learn_one(x, y)

        n_hits += interrupted(learn_two, k, is_ours)
        for x, y in events[model.n_examples :]:
            model.learn_one(x, y)
        kept = set(range(31, 61) if "window" in parameters else range(1, 61))
        gone = min(kept) + k % 30
        interrupted(partial(model.unlearn_one, gone), k, is_ours)
        model.predict_one(events[0][0])
        if gone in model.kept_numbers():
            model.unlearn_one(gone)
        assert set(model.kept_numbers().tolist()) == kept - {gone}, k
        expected = learnt([events[n - 1] for n in sorted(kept - {gone})], **parameters)
        assert model.dual == pytest.approx(expected.dual, rel=1e-9)
        assert model.delta < 1e-8
    assert n_hits > 10


@pytest.mark.parametrize("cache_mb", [0.0, 200.0])
def test_looking_changes_nothing(cache_mb):
    model = learnt(bananas(120), cache_mb=cache_mb)
    influence = model.influence()
    before = codec.to_file(model)[0]
    for estimate in (False, True):
        model.leave_one_out(estimate)
        assert model.influence() == influence
    assert codec.to_file(model)[0] == before


def test_support_vectors_have_a_column_for_each_feature():
    model = learnt(bananas(30))
    model.learn_one({"1": 0.0, "2": 0.0, "new": 1.0}, True, w=0.0)
    vectors = model.support_vectors()
    assert vectors.features == ["1", "2", "new"]
    assert vectors.rows.shape == (model.n_support_vectors, 3)
    assert model.forget(lambda x, y: x["new"] == 0.0) == 30


def test_the_only_example_on_the_margin_is_left_out_exactly():
    model = IncrementalSVMClassifier(kernels.Linear(), C=0.01)
    for a, y in ((1.0, True), (-1.0, False), (3.0, True), (-2.5, False)):
        model.learn_one({"a": a}, y)
    exact, estimated = model.leave_one_out(), model.leave_one_out(estimate=True)
    influence = model.influence()
    assert influence
    for number, one in influence.items():
        assert one.margin_without == estimated.margins[estimated.ids == number]
    assert np.isfinite(estimated.margins).all()
    assert exact.margins.shape == estimated.margins.shape


def test_a_monitor_sees_the_optimum():
    monitor = TrackingMonitor(IncrementalSVMClassifier(RBF), every=50)
    for x, y in bananas(200):
        monitor.learn_one(x, y)
    values = monitor.get()
    assert 0.0 <= values["gap"] < 1e-9
    assert values["n_support_vectors"] == monitor.learner.n_support_vectors
    assert "optimum" in monitor.certificate_reason


def test_leave_one_out_by_cost_is_that_of_models_with_these_costs():
    events = bananas(150)
    model, costs = learnt(events), [100.0, 0.1, 5.0]
    before = model.dual
    expected = {C: learnt(events, C=C).leave_one_out().error for C in sorted(costs)}
    assert model.leave_one_out_by_C(costs) == expected
    estimated = {C: learnt(events, C=C).leave_one_out(estimate=True).error for C in sorted(costs)}
    assert model.leave_one_out_by_C(costs, estimate=True) == pytest.approx(estimated, abs=0.01)
    assert (model.dual, model.C) == (before, 1.0)
    with pytest.raises(ParameterError, match="C=0"):
        model.leave_one_out_by_C([1.0, 0])
