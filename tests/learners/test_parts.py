"""Learners as compositions: what each kind has, and how a stream goes on after Ctrl-C."""

import copy
import itertools
import threading

import numpy as np
import pyarrow as pa
import pytest
from river import datasets

import streamsvm
from streamsvm import (
    AdaptiveSVMClassifier,
    LaRankClassifier,
    LASVMClassifier,
    SBPClassifier,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.models.kernel import race
from streamsvm.models.kernel.feature_scales import FeatureScales
from streamsvm.models.kernel.kernel_model import KernelModel
from tests.interruptions import interrupted
from tests.learners.test_all_learners import content, saved

OF_DUAL = ("dual", "duality_gap", "kept_gap", "kept_numbers", "at_bound")


def learnt(model, n=60):
    for x, y in datasets.Bananas().take(n):
        model.learn_one(x, y)
    return model


def interrupt(monkeypatch, thing, name, do):
    """Do something in which a function is interrupted as it begins."""

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(thing, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            do()


@pytest.mark.parametrize("name", ["huller", "sbp", "kernel_pa", "lasvm", "larank", "tracking"])
def test_a_learner_has_the_methods_of_its_kind_only(name):
    cls = next(learner.cls for learner in registered_learners("rows") if learner.name == name)
    has_dual = name in ("lasvm", "larank", "tracking")
    assert cls.has_dual is has_dual
    for model in (cls(seed=1), learnt(cls(seed=1))):
        assert [hasattr(model, name) for name in OF_DUAL] == [has_dual] * len(OF_DUAL)
        assert hasattr(model, "objective_of") is not has_dual
        assert hasattr(model, "squared_norm") is (name not in ("huller", "sbp"))
    assert hasattr(cls, "duality_gap") is has_dual


def test_kappa_of_tracking_is_the_share_of_null_steps():
    model = learnt(TrackingSVMClassifier(seed=1))
    counts = model.counters
    assert model.kappa == counts["null_steps"] / counts["steps"] > 0.0


def test_hashed_rows_have_their_width():
    model = LASVMClassifier(hashing=1024)
    assert model.support_vectors().rows.shape == (0, 1024)
    for word, label in (("a", True), ("b", False)):
        model.learn_one({word: 1.0}, label)
    assert model.support_vectors().rows.shape == (2, 1024)


def test_a_model_interrupted_before_its_trial_noted_an_example_loads(tmp_path):
    model = learnt(LASVMClassifier(), 41)
    model.preparation.trial.keep(np.arange(40))
    model.save(tmp_path / "m.svm")
    assert streamsvm.load(tmp_path / "m.svm").n_examples == 41


@pytest.mark.parametrize(
    ("thing", "name", "n"),
    [(KernelModel, "adapt", 1024), (race, "begun", 1024), (KernelModel, "rebalance", 64),
     (race, "_advance", 64)],
)  # fmt: skip
@pytest.mark.parametrize("in_batches", [False, True])
def test_a_race_that_an_interruption_skipped_begins_after_the_next_example(
    thing, name, n, in_batches, tmp_path, monkeypatch
):
    """The last one is at 1,024: without it the trial would never end, and keep all rows."""
    draws = np.random.default_rng(0)
    x = draws.normal(size=(1400, 3)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0.0).tolist()
    events, model = [dict(enumerate(row)) for row in x.tolist()], LASVMClassifier()
    model.learn_many(x[: n - 1], y[: n - 1])
    interrupt(monkeypatch, thing, name, lambda: model.learn_one(events[n - 1], y[n - 1]))
    assert model.n_examples == n
    loaded = saved(model, tmp_path / "m.svm")
    assert loaded.n_examples == n
    # A file does not have a trial any more whose last race was skipped.
    for one in (model, loaded) if n == 64 else (model,):
        for i in range(n, 1400, 100 if in_batches else 1):
            if in_batches:
                one.learn_many(x[i : i + 100], y[i : i + 100])
            else:
                one.learn_one(events[i], y[i])
        expected = "1,025" if n == 1024 else "1,024"
        assert one.preparation.trial is None and f"on the first {expected}" in one.chosen
    assert n == 1024 or content(loaded) == content(model)


def test_a_rule_that_an_interruption_skipped_is_followed_after_the_next_example(
    tmp_path, monkeypatch
):
    model, events = learnt(SBPClassifier(seed=1), 31), list(datasets.Bananas().take(33))
    interrupt(monkeypatch, KernelModel, "adapt", lambda: model.learn_one(*events[31]))
    before = model.kernel_.gamma
    loaded = saved(model, tmp_path / "m.svm")
    for each in (model, loaded):
        each.learn_one(*events[32])
    assert loaded.kernel_ == model.kernel_
    other = learnt(SBPClassifier(seed=1), 32)
    assert model.kernel_.gamma > 1.05 * before
    assert model.kernel_.gamma == pytest.approx(other.kernel_.gamma, rel=0.1)


@pytest.mark.parametrize("n", [250, 255])
def test_an_interrupted_adaptive_learner_counts_what_it_learnt(n, monkeypatch):
    model, events = AdaptiveSVMClassifier(seed=1), list(datasets.Bananas().take(256))
    learnt(model, n)
    rows, y = pa.Table.from_pylist([x for x, _ in events[n:]]), [y for _, y in events[n:]]
    learn = (
        (lambda: model.learn_one(*events[255])) if n == 255 else lambda: model.learn_many(rows, y)
    )
    interrupt(monkeypatch, KernelModel, "adapt", learn)
    assert model.n_examples == model.in_use.n_examples == 256


@pytest.mark.parametrize("cls", [LASVMClassifier, LaRankClassifier])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_reads_the_arrays_waits_for_a_thread_that_learns(cls, n_classes):
    model = cls(kernel=streamsvm.kernels.RBF(gamma=1.0))
    draws = np.random.default_rng(0)
    model.learn_many(draws.normal(size=(30, 2)), draws.integers(n_classes, size=30))
    reads = {
        "support_vectors": model.support_vectors,
        "at_bound": model.at_bound,
        "n_support_vectors": lambda: model.n_support_vectors,
        "duality_gap": model.duality_gap,
        "dual": lambda: model.dual,
    }
    for name, read in reads.items():
        done = threading.Event()
        with model.lock:
            thread = threading.Thread(target=lambda read=read, done=done: (read(), done.set()))
            thread.start()
            assert not done.wait(0.05), name
        thread.join()
        assert done.is_set(), name


# While a class or a feature comes: as if it had come before or after


MAKE = {
    "lasvm": lambda: LASVMClassifier(kernels.RBF(gamma=0.5), scale=False),
    "trial": lambda: LASVMClassifier(),
    "adaptive": lambda: AdaptiveSVMClassifier(seed=1),
}
FILES = ("/lasvm_pairs/", "/lasvm_solver.py", "/kernel_solver.py", "/event_path.py")


def is_traced(code):
    return any(name in code.co_filename for name in FILES) and code.co_name != "__del__"


def events_of(n, names, n_classes):
    draws = np.random.default_rng(len(names) + n_classes)
    rows = draws.normal(size=(n, len(names))).tolist()
    return [(dict(zip(names, row, strict=True)), i % n_classes) for i, row in enumerate(rows)]


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("names", ["abcd", "abcde"])
def test_the_stream_goes_on_wherever_it_was_interrupted(name, names, tmp_path):
    n_classes = 3 if names == "abcd" else 2
    model, ends = MAKE[name](), set()
    for x, y in events_of(60, "abcd", 2):
        model.learn_one(x, y)
    later = events_of(30, names, n_classes)
    x, y = later[2]  # the first of its class
    for at in itertools.count(1, 1 if name == "lasvm" else 7):
        one = copy.deepcopy(model)
        if not interrupted(lambda m=one: m.learn_one(x, y), at, is_traced):
            break
        if one.n_examples == model.n_examples:
            one.learn_one(x, y)
        for event, label in later:
            one.predict_one(event)
            one.learn_one(event, label)
        one.save(tmp_path / "m.svm")
        margins = [one.decision_function_one(event) for event, _ in later]
        loaded = streamsvm.load(tmp_path / "m.svm")
        assert margins == [loaded.decision_function_one(event) for event, _ in later]
        ends.add(str(margins))
    assert at > 10
    # The event was learnt, or not at all and once more: the same, but that its number differs.
    assert len(ends) <= 2 or name != "lasvm"


def test_scales_know_a_feature_as_a_whole_or_not_at_all():
    scales = FeatureScales()
    scales.learn_first(np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32))
    for at in itertools.count(1):
        one = copy.deepcopy(scales)
        stopped = interrupted(lambda s=one: s.grow(5), at, FeatureScales.grow.__code__.__eq__)
        one.grow(5)
        assert {one.statistics.shape[1], one.limits.shape[1], one.is_flag.size} == {5}
        if not stopped:
            break
    assert at > 5
