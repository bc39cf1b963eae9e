"""Taking examples back from the large kernel learners: what is gone, what is left, and how well."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamsvm
from connectors import MemorySource
from streamsvm import (
    AmbiguousSVMClassifier,
    IncrementalSVMClassifier,
    LaRankClassifier,
    LASVMClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
)
from streamsvm.errors import ParameterError
from streamsvm.kernels import RBF, Linear
from streamsvm.learners.bases.kernel import unlearning
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.forgetting import forget_in_file
from streamsvm.run.runner import Run
from streamsvm.selection import Active
from streamsvm.solvers.lasvm_pairs.problems import cache_of
from streamsvm.support.rows import dense
from tests.interruptions import interrupted
from tests.learners.test_all_learners import saved
from tests.reference import slow_unlearning
from tests.slow import slow_but

KERNEL = RBF(gamma=0.7)
SECRET, VALUE = "patient 4711", 1.2345
OWN = 23
"""The number of the example with the secret name."""

MAKE = {
    "two": lambda: LASVMClassifier(KERNEL, scale=False, tau=1e-5),
    "sparse": lambda: LASVMClassifier(KERNEL, scale=False, sparse=True, tau=1e-5),
    "three": lambda: LASVMClassifier(KERNEL, scale=False, C=3.0, tau=1e-5),
    "sparse three": lambda: LASVMClassifier(KERNEL, scale=False, sparse=True, tau=1e-5),
    "larank": lambda: LaRankClassifier(KERNEL, scale=False, C=1.0, seed=1, tau=1e-5),
    "tracking": lambda: TrackingSVMClassifier(KERNEL, seed=1, tau=1e-5),
    "linear": lambda: TrackingSVMClassifier(Linear(), C=0.1, seed=1, tau=1e-5),
    "bags": lambda: AmbiguousSVMClassifier(KERNEL, C=1.0, seed=1),
}
RARE, SPARSE = "sparse three", "LASVM of several classes sparse"


def stream(name, n=60, seed=0):
    rng, found = np.random.default_rng(seed), []
    for number in range(1, n + 1):
        x = rng.normal(size=3).round(3)
        event = dict(zip("abc", x.tolist(), strict=True))
        if "sparse" in name:
            event = {"a": event["a"], "b": event["b"], f"word {rng.integers(9)}": 1.0}
        if number == OWN:
            event[SECRET] = VALUE
        label = (
            int(x[0] > 0) + int(x[1] > 0)
            if "three" in name or name in ("larank", "bags")
            else int(x[0] > x[1])
        )
        label = label if rng.random() < 0.8 else int(rng.integers(2))
        is_bag = name == "bags" and number % 2
        found.append((event, {label, int(rng.integers(3))} if is_bag else label))
    return found


def learnt(name, events, left_out=()):
    model = MAKE[name]() if isinstance(name, str) else name
    for number, (event, label) in enumerate(events, 1):
        if number not in left_out:
            model.learn_one(event, label)
    return model


def finished(model):
    model.finish(**({"share": 0.0} if isinstance(model, LaRankClassifier) else {}))
    return model


def check_optimisation(model):
    """Constraints hold, and what is kept up to date is what would be computed afresh."""
    solver, d = model.solver, len(model.schema)
    coefficients, numbers = model.model.expansion()[1:]
    of_labels = isinstance(model, (LaRankClassifier, AmbiguousSVMClassifier))
    sums = coefficients.sum(axis=1 if of_labels else 0)
    if not isinstance(model, TrackingSVMClassifier):
        np.testing.assert_allclose(sums, 0.0, atol=1e-9)
    assert not coefficients[numbers == 0].any()
    # Without b, where there is one: of problems each has its own.
    fresh = copy.deepcopy(solver)
    fresh.rebuild(d)
    of, own = solver.state, fresh.state
    names = [name for name in ("gradient", "f", "w") if hasattr(of, name)]
    if hasattr(of, "problems"):
        of, own, names = of.problems, own.problems, []
        for a, b in zip(of.segments, own.segments, strict=True):
            n = int(of.table["n"][list(of.segments).index(a)])
            here, there = (slice(x["start"], x["start"] + n) for x in (a, b))
            np.testing.assert_allclose(of.gradient[here], own.gradient[there], atol=1e-5)
            assert (of.alpha[here] <= of.upper[here]).all()
    for name in names:
        np.testing.assert_allclose(getattr(of, name), getattr(own, name), atol=1e-5)
    assert model.dual == pytest.approx(fresh.dual, abs=1e-5 * (1 + abs(fresh.dual)))


def values_of(model):
    """Return all numbers of the arrays of a model's state, and of rows in reserve and trial."""
    state, parts = model.state, [model.solver.kept_rows, model.preparation.trial]
    found = [dense(part.joined()[0]).ravel() for part in parts if part is not None]

    def add(part):
        if isinstance(part, tuple):
            for one in part:
                add(one)
        elif part.dtype.kind == "f":
            found.append(part.ravel())

    if not hasattr(state, "problems"):
        add(state)
        return np.concatenate(found)
    # What is beside the problems' own segments is memory that was never written.
    add((state.store, state.diagonal, state.block))
    for p in range(len(state.problems.table)):
        cache = cache_of(state.problems, p)
        add(tuple(cache.values[line, :n] for line, n in enumerate(cache.length)))
    return np.concatenate(found)


NAMES = slow_but(MAKE, *set(MAKE) - {RARE}, compiling=SPARSE)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 5), more=st.lists(st.integers(1, 60), max_size=3))
def test_what_is_taken_back_is_gone_and_the_rest_is_as_without_it(name, seed, more):
    events = stream(name, seed=seed)
    model, ids = learnt(name, events), {OWN, *more}
    kept = set(model.kept_numbers().tolist())
    if model.solver.kept_rows is not None:
        kept |= set(model.solver.kept_rows.facts()["number"].tolist())
    assert model.audit(OWN)[OWN].features == [SECRET] and model.audit([OWN])[OWN].is_kept
    result = model.unlearn([*ids, 999])
    assert set(result.removed) == ids & kept and set(result.not_kept) == {999, *ids} - kept
    assert result.gap == model.duality_gap() < 0.05
    check_optimisation(model)
    for remains in model.audit(ids).values():
        assert not remains.is_kept and remains.averages
        assert remains.coefficients == remains.features == []
    assert not set(model.kept_numbers().tolist()) & ids
    assert SECRET not in model.feature_names
    if name == "bags":
        # Without a reserve, examples that had no loss when they came are not looked at again.
        return
    # What never learnt them comes to the same optimum; it need not have kept the same others.
    other = finished(learnt(name, events, ids))
    assert finished(model).dual == pytest.approx(other.dual, rel=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_it_is_in_memory_or_in_a_file(name, tmp_path, monkeypatch):
    events = stream(name)
    model = learnt(name, events)
    probe = copy.deepcopy(model)
    # Before it finishes: a file may be written there, too.
    monkeypatch.setattr(type(model), "finish", lambda self: None)
    rows, _, numbers = model.model.expansion()
    of_kernel = np.zeros(0)
    if model.kernel_ is KERNEL:
        x = dense(rows).astype(float)
        own = x[numbers == OWN][0]
        of_kernel = np.exp(
            -KERNEL.gamma * ((x[(numbers > 0) & (numbers != OWN)] - own) ** 2).sum(1)
        )
        assert (np.abs(values_of(model)[:, None] - of_kernel).min(axis=0) < 1e-6).mean() > 0.5
    model.unlearn(OWN)
    left = values_of(model)
    assert np.float32(VALUE) in values_of(probe) and np.float32(VALUE) not in left
    if of_kernel.size:
        mine = of_kernel[of_kernel > 1e-9]
        assert not (np.abs(left[:, None] - mine) < 1e-7 * mine).any()
    model.save(tmp_path / "model.svm")
    probe.save(tmp_path / "before.svm")
    texts = [SECRET.encode(), np.float32(VALUE).tobytes()]
    assert all(text in (tmp_path / "before.svm").read_bytes() for text in texts)
    assert not any(text in (tmp_path / "model.svm").read_bytes() for text in texts)
    loaded = streamsvm.load(tmp_path / "model.svm")
    for event, label in events:
        assert model.predict_proba_one(event) == loaded.predict_proba_one(event)
        model.learn_one(event, label)
        loaded.learn_one(event, label)
    assert model.dual == loaded.dual and model.feature_names == loaded.feature_names


def test_a_coefficient_goes_where_the_slow_twin_sends_it(monkeypatch):
    model = learnt("two", stream("two"))
    monkeypatch.setattr(LASVMClassifier, "finish", lambda self: None)
    rows, alpha, numbers = (np.array(part) for part in model.model.expansion())
    at, live = int(np.flatnonzero(numbers == OWN)[0]), np.flatnonzero(numbers)
    gram = np.exp(-KERNEL.gamma * ((rows[:, None] - rows[None]) ** 2).sum(axis=2, dtype=float))
    y, cost = model.state.y[: len(alpha)].copy(), np.where(numbers != 0, 1.0, 0.0)
    dual, lost = model.dual, float(model.state.info[0].lost)
    model.unlearn(OWN)
    expected = slow_unlearning.without(gram, y, alpha, cost, at)
    of = dict(
        zip(model.model.expansion()[2].tolist(), model.model.expansion()[1].tolist(), strict=True)
    )
    found = [of[number] for number in numbers[live].tolist() if number != OWN]
    np.testing.assert_allclose(found, expected[live[live != at]], atol=1e-5)
    assert model.dual == pytest.approx(slow_unlearning.dual(gram, y, expected), abs=1e-4)
    # What it costs the dual is counted, so that the certificate stays a bound.
    assert model.state.info[0].lost - lost == pytest.approx(dual - model.dual, abs=1e-9)


def is_ours(code):
    # But for the guard's own lines, between which Python runs no signal handler.
    return "streamsvm" in code.co_filename and not code.co_filename.endswith("locked.py")


def test_an_interruption_at_any_line_leaves_all_of_it_or_nothing(monkeypatch):
    events = stream("two", 40)
    model = MAKE["two"]()
    monitor = TrackingMonitor(model, every=10)
    learnt(model, events)
    monkeypatch.setattr(LASVMClassifier, "finish", lambda self: None)
    before, at, outcomes = model.decision_function_one(events[0][0]), 0, set()
    while True:
        at += 19
        watched = copy.deepcopy(monitor)
        own = watched.learner
        was = interrupted(lambda own=own: own.unlearn(OWN), at, is_ours)
        is_kept = own.audit(OWN)[OWN].is_kept
        outcomes.add(is_kept)
        assert (SECRET in own.feature_names) == is_kept == (OWN in watched.passed_by.numbers)
        if is_kept:
            assert own.decision_function_one(events[0][0]) == before
        own.learn_one(*events[1])
        if not was:
            break
    assert outcomes == {True, False}


def test_candidates_trials_and_monitors_forget_too(tmp_path):
    events = stream("two", 300)
    x = np.array([[event[name] for name in "abc"] for event, _ in events])
    y = [label for _, label in events]
    model = LASVMClassifier(KERNEL, scale=False, selection=Active(candidates=20))
    model.learn_many(x, y, ids=np.arange(1, 301))
    waits = int(model.waiting.facts["id"][0])
    number = model.kept_numbers()[0]
    assert model.audit(waits)[waits].is_waiting and not model.audit(waits)[waits].is_stored
    assert model.unlearn([waits, number]).removed == sorted([waits, number])
    assert waits not in model.waiting.facts["id"] and model.waiting.are_new(np.array([number]))
    model.learn_many(x[:50], y[:50], ids=np.arange(1, 51))
    # The first examples, by which scale and width are found: then the trial goes on, in a file too.
    for n, gone in ((300, [OWN]), (5, range(1, 6))):
        model = learnt(LASVMClassifier(), events[:n])
        assert model.unlearn(gone).removed == [*gone]
        assert not np.isin(gone, model.preparation.trial.facts()["entered"]).any()
        loaded = saved(model, tmp_path / "model.svm")
        for event, label in stream("two", 800, seed=3):
            event.pop(SECRET, None)
            model.learn_one(event, label)
            loaded.learn_one(event, label)
        assert model.chosen == loaded.chosen and model.dual == loaded.dual
        assert SECRET not in model.feature_names


def test_statistics_are_those_of_the_others():
    events = stream("two")
    parameters = {"scale": False, "gamma": "scale", "class_weight": "balanced"}
    model = learnt(LASVMClassifier(**parameters), events)
    other = learnt(LASVMClassifier(**parameters), events, [OWN])
    model.unlearn(OWN)
    n = len(events)
    np.testing.assert_allclose(
        model.preparation.variances(n, 3, False), other.preparation.variances(n - 1, 3, False)
    )
    np.testing.assert_allclose(
        model.schema.missing.statistics[:, :3], other.schema.missing.statistics[:, :3], rtol=1e-6
    )
    np.testing.assert_array_equal(model.model.costs.counts, other.model.costs.counts)


@pytest.mark.parametrize(
    "name", slow_but(["two", "three", RARE, "larank"], "two", "three", "larank", compiling=SPARSE)
)
def test_probabilities_are_calibrated_anew_by_the_others(name):
    model = learnt(name, stream(name))
    other = copy.deepcopy(model)
    of = other.state.problems if "three" in name else other.targets
    of.calibration[:] = 99.0
    for one in (model, other):
        one.unlearn(OWN)
    for event, _ in stream(name, 5, seed=3):
        assert model.predict_proba_one(event) == other.predict_proba_one(event)


def test_a_checkpoint_loses_the_columns_in_its_monitors_sample_too(tmp_path):
    path, events = tmp_path / "run.ckpt", stream("two", 200)
    model = TrackingMonitor(MAKE["two"](), every=50)
    Run(MemorySource(events), model, checkpoint=Checkpoint(path, every=10)).execute()
    assert OWN in model.passed_by.numbers
    found = forget_in_file(path, [OWN])
    assert found.of_model.removed == [OWN] and SECRET.encode() not in path.read_bytes()
    again = TrackingMonitor(MAKE["two"](), every=50)
    Run(MemorySource(events), again, checkpoint=Checkpoint(path, every=10)).execute()
    x = again.passed_by.draw(10, 3, np.zeros(0, np.int64))[0]
    assert x.shape[1] == 3 and OWN not in again.passed_by.numbers
    assert again.measure()


def test_the_monitors_sample_forgets_whoever_asks():
    model = TrackingMonitor(LASVMClassifier(KERNEL, scale=False, reserve=0), every=50)
    for x, y in stream("two", 200):
        model.learn_one(x, y)
    kept = {*model.passed_by.numbers.tolist()} - {0}
    # Of some of them nothing is left but a row of the sample.
    passed = [n for n in sorted(kept) if not model.learner.keeps(np.array([n], np.int64))[0]]
    assert passed and model.learner.unlearn(passed).removed == []
    assert not {*passed} & {*model.passed_by.numbers.tolist()}


def test_what_is_not_kept_and_what_is_no_id():
    for make in MAKE.values():
        assert make().unlearn(range(1, 4)) == unlearning.Unlearned([], [1, 2, 3], 0.0)
        assert not make().audit(1)[1].is_kept and make().audit([]) == {}
    model = learnt("two", stream("two"))
    dual = model.dual
    assert model.unlearn([]).removed == [] and model.unlearn(999).not_kept == [999]
    for ids in (0, -1, True, 1.0, "7", [3, "4"], [2**63], None):
        for ask in (model.unlearn, model.audit):
            with pytest.raises(ParameterError, match="ids"):
                ask(ids)
    assert model.dual == dual
    # The exact learner is asked likewise.
    model = learnt(IncrementalSVMClassifier(KERNEL), stream("two"))
    assert model.audit(OWN)[OWN].is_kept and model.audit(OWN)[OWN].coefficients
    assert model.unlearn([OWN, 999]) == unlearning.Unlearned([OWN], [999], model.duality_gap())
    assert not model.audit(OWN)[OWN].is_kept and model.unlearn(OWN).removed == []


def is_in_file(number, model, path):
    model.save(path)
    content = path.read_bytes()
    return np.int64(number).tobytes() in content or str(number).encode() in content


@pytest.mark.parametrize("name", ["tracking", "linear"])
def test_the_largest_id_is_forgotten_with_its_example(name, tmp_path):
    large = 2**52 - 4711
    events, labels = zip(*stream(name, 20), strict=True)
    x, ids = np.array([[event[n] for n in "abc"] for event in events]), np.arange(1, 21)
    ids[7] = large
    model, other = (MAKE[name]().clone({"window": window}) for window in (None, 5))
    for one in (model, other):
        one.learn_many(x, labels, ids=ids)
        assert is_in_file(large, one, tmp_path / "before.svm")
        # The second one has left it out.
        assert one.unlearn(large).removed == ([large] if one is model else [])
        assert not is_in_file(large, one, tmp_path / "model.svm")
        assert one.state.info[0].last_number == one.kept_numbers().max()
    # Others are known again, and it is new.
    model.learn_many(x[6:9], labels[6:9], ids=ids[6:9])
    assert sorted(model.kept_numbers()) == sorted(ids)


def test_bounded_learners_forget_by_number_what_they_keep():
    for parameters in ({"window": 30}, {"max_support_vectors": 12}):
        model = learnt(LASVMClassifier(KERNEL, scale=False, **parameters), stream("two"))
        number = int(abs(model.kept_numbers()[0]))
        assert model.unlearn(number).removed == [number]
        assert number not in np.abs(model.kept_numbers())
        learnt(model, stream("two", seed=2))
