"""Learners that choose their examples: as the plain program does, and the same in any batches."""

import copy
import random

import numpy as np
import pyarrow as pa
import pytest

import streamsvm
from connectors import MemorySource
from streamsvm import (
    KernelPerceptronClassifier,
    LaRankClassifier,
    LASVMClassifier,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.model_files import codec
from streamsvm.models.kernel.kept_values import kept_values
from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from streamsvm.selection import Active, AutoActive, Gradient, Random
from streamsvm.selection.candidates import SEEDS
from tests.reference.slow_selection import SlowSelection
from tests.slow import compiles

KERNEL = {"kernel": kernels.RBF(gamma=1.0), "C": 2.0}
MAKERS = {
    "lasvm": (LASVMClassifier, KERNEL),
    "lasvm, auto": (LASVMClassifier, {}),
    "lasvm, budget": (LASVMClassifier, KERNEL | {"max_support_vectors": 12}),
    "lasvm, window": (LASVMClassifier, KERNEL | {"window": 15}),
    "tracking": (TrackingSVMClassifier, KERNEL | {"seed": 3}),
    "tracking, window": (TrackingSVMClassifier, KERNEL | {"seed": 3, "window": 15}),
    "larank": (LaRankClassifier, KERNEL | {"seed": 3}),
    "perceptron": (KernelPerceptronClassifier, {"kernel": KERNEL["kernel"], "seed": 3}),
    "merging": (
        KernelPerceptronClassifier,
        {"kernel": KERNEL["kernel"], "seed": 3, "max_support_vectors": 8, "budget": "merge"},
    ),
    "sgd": (SVMSGDClassifier, {"t0": 100.0}),
}
RULES = {
    "active": Active(candidates=7, share=0.3),
    "gradient": Gradient(candidates=7, share=0.3),
    "autoactive": AutoActive(candidates=9, near=2),
}


def stream(n, n_classes=2, seed=0, noise=0.1):
    draw = random.Random(seed)
    for _ in range(n):
        x = {"a": draw.uniform(-1, 1), "b": draw.uniform(-1, 1)}
        inner = int(x["a"] ** 2 + x["b"] ** 2 < 0.5)
        y = inner + (n_classes > 2 and inner and x["a"] > 0)
        yield x, int(y) if draw.random() > noise else draw.randrange(n_classes)


def as_batch(events):
    return np.array([[x["a"], x["b"]] for x, _ in events]), [y for _, y in events]


def state_of(model):
    """Return what a file would hold, without what scratch holds."""
    content, arrays = codec.to_file(model)
    if "info" in content:
        content["info"] = {k: v for k, v in content["info"].items() if k != "ready"}
    return content, {name: array.tolist() for name, array in arrays.items() if name != "info"}


def several(name):
    return 3 if name.startswith(("lasvm", "larank", "sgd")) else 2


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", MAKERS)
def test_learns_what_the_plain_program_chooses(name, rule):
    cls, parameters = MAKERS[name]
    for n_classes in {2, several(name)}:
        model = cls(**parameters, selection=RULES[rule])
        slow = SlowSelection(cls(**parameters), rule, RULES[rule].candidates, 0.3, 2)
        events = list(stream(300, n_classes))
        for x, y in events:
            model.learn_one(x, y)
            slow.learn_one(x, y)
        assert model.waiting.n_taken == slow.n_taken == slow.model.n_examples
        assert model.waiting.n_seen == 300
        assert slow.n_taken < 225
        for x, _ in events[:50]:
            assert model.decision_function_one(x) == slow.model.decision_function_one(x)


@pytest.mark.parametrize("rule", [*RULES, "random"])
@pytest.mark.parametrize("name", MAKERS)
def test_batches_events_and_files_give_the_same_model(name, rule, tmp_path):
    cls, parameters = MAKERS[name]
    selection = RULES.get(rule, Random(candidates=7, share=0.3, seed=4))
    events = list(stream(300, several(name)))
    by_events = cls(**parameters, selection=selection)
    predicted = []
    for x, y in events:
        predicted.append(by_events.predict_one(x))
        by_events.learn_one(x, y)
    by_batches = cls(**parameters, selection=selection)
    by_files = cls(**parameters, selection=selection)
    X, y = as_batch(events)
    again = []
    for start, stop in ((0, 1), (1, 20), (20, 20), (20, 150), (150, 300)):
        again += by_batches.predict_then_learn_many(
            pa.table({"a": X[start:stop, 0], "b": X[start:stop, 1]}), y[start:stop]
        )
    for start in range(0, 300, 37):
        by_files.save(tmp_path / "b.svm")
        by_files = copy.deepcopy(streamsvm.load(tmp_path / "b.svm"))
        some = events[start : start + 37]
        table = pa.table({name: [x[name] for x, _ in some] for name in "ab"})
        by_files.learn_many(table, [label for _, label in some])
    assert state_of(by_events) == state_of(by_batches)
    assert again == predicted
    for x, _ in events[:30]:
        assert by_files.decision_function_one(x) == by_events.decision_function_one(x)
    assert by_files.waiting.n_taken == by_events.waiting.n_taken


def bring_up_to_date(model):
    sizes, waiting = model.model.sizes(), model.waiting
    scaled = model.preparation.scaled
    kept_values(waiting).bring_up_to_date(model.solver, sizes, waiting, scaled)


def test_kept_kernel_values_are_those_computed_anew():
    for name in ("lasvm", "lasvm, budget", "lasvm, window", "tracking, window", "merging"):
        cls, parameters = MAKERS[name]
        model = cls(**parameters, selection=Active(candidates=7, share=0.5))
        for x, y in stream(300):
            model.learn_one(x, y)
            if len(model.waiting):
                bring_up_to_date(model)
                kept = model.model.margins_of_waiting(model.waiting, len(model.schema))
                rows = model.waiting.rows(2)
                assert (kept == model.margins_of(rows)).all(), name


@pytest.mark.parametrize(
    "n_classes", [2, pytest.param(3, marks=compiles("LASVM of several classes sparse"))]
)
def test_sparse_rows_and_new_features_and_classes(n_classes):
    draw = random.Random(0)
    words = [f"w{i}" for i in range(400)]
    model = LASVMClassifier(selection=Active(candidates=10, share=0.2))
    for n in range(400):
        some = draw.sample(words, 4)
        y = "abc"[int(some[0][1:]) % (2 if n < 200 else n_classes)]
        model.learn_one(dict.fromkeys(some, 1.0), y)
        if n == 60:
            assert len(model.waiting) > 0
    assert model.is_sparse
    bring_up_to_date(model)
    kept = model.model.margins_of_waiting(model.waiting, len(model.schema))
    expected = model.margins_of(model.waiting.rows(len(model.schema)))
    assert (np.atleast_2d(kept.T)[:3] == np.atleast_2d(expected.T)[:3]).all()
    assert model.waiting.n_taken < 150
    assert set(model.classes) == set("abc"[:n_classes])
    assert model.waiting.n_seeds.tolist() == [SEEDS] * n_classes


@pytest.mark.parametrize("rule", [Active(5, 0.3), Gradient(20, 0.5), AutoActive(9, 2)])
def test_ids_in_any_batches_and_repeated_are_learnt_once(rule):
    X, y = as_batch(list(stream(300)))
    ids = np.arange(1, 301)
    ids[::7] = ids[1::7][: len(ids[::7])]  # the next row has the same
    one, many = (LASVMClassifier(**KERNEL, selection=rule) for _ in range(2))
    for _ in range(3):
        many.learn_many(X, y, ids=ids)
        for r in range(300):
            one.learn_many(X[r : r + 1], y[r : r + 1], ids=ids[r : r + 1])
        assert state_of(one) == state_of(many)
    entered = many.support_vectors().entered.tolist()
    assert len(set(entered)) == len(entered)
    assert many.waiting.n_taken == many.n_examples <= len(set(ids.tolist()))


def test_late_labels_leave_out_no_example():
    events = list(stream(1500))
    at_once, late = (LASVMClassifier(**KERNEL, selection=Active(share=0.2)) for _ in range(2))
    Run(MemorySource(events), at_once).execute()
    report = Run(MemorySource(events), late, late=LateLabels(delay=30)).execute()
    assert report.learnt == at_once.waiting.n_seen == late.waiting.n_seen == 1500
    assert late.waiting.n_taken == at_once.waiting.n_taken == late.n_examples
    assert state_of(late) == state_of(at_once)


def test_an_interruption_neither_loses_nor_doubles_an_example(monkeypatch):
    X, y = as_batch(list(stream(400)))
    ids = np.arange(1, 401)
    model = LASVMClassifier(**KERNEL, selection=Active(10, 0.3))
    learn, calls = KernelModel.learn, []

    def interrupted(self, rows, has_scores=True):
        calls.append(1)
        if len(calls) % 20 == 0:
            raise KeyboardInterrupt
        margins = learn(self, rows, has_scores)
        if len(calls) % 20 == 10:
            raise KeyboardInterrupt
        return margins

    monkeypatch.setattr(KernelModel, "learn", interrupted)
    done, n_interrupted = 0, 0
    while done < 400:
        try:
            model.learn_many(X[done : done + 20], y[done : done + 20], ids=ids[done : done + 20])
        except KeyboardInterrupt:
            n_interrupted += 1
        done += 20
        assert model.n_examples == model.waiting.n_taken
        assert not set(model.waiting.facts["id"].tolist()) & set(model.support_vectors().entered)
    assert n_interrupted > 5


def test_weights_of_zero_record_the_label_only():
    model = LASVMClassifier(**KERNEL, selection=Active(candidates=5, share=0.5))
    for x, y in stream(50):
        model.learn_one(x, y)
    taken = model.waiting.n_taken
    model.learn_one({"a": 0.0, "b": 0.0}, 7, w=0.0)
    assert 7 in model.classes
    assert model.waiting.n_taken == taken


@pytest.mark.parametrize(
    "make",
    [
        lambda: Active(candidates=0),
        lambda: Active(candidates=2.5),
        lambda: Active(share=0.0),
        lambda: Active(share=1.5),
        lambda: Active(share=float("nan")),
        lambda: AutoActive(near=0),
        lambda: Random(seed=-1),
        lambda: LASVMClassifier(selection="active"),
        lambda: LASVMClassifier(selection=Active),
    ],
)
def test_wrong_settings_are_refused(make):
    with pytest.raises(ParameterError, match="use"):
        make()


def test_every_learner_of_rows_but_two_takes_a_selection():
    for learner in registered_learners("rows"):
        if learner.name in ("adaptive", "ambiguous"):
            continue
        model = learner.cls(
            **next(learner.cls._unit_test_params()), selection=AutoActive(candidates=8, near=2)
        )
        for x, y in stream(120):
            model.learn_one(x, y)
        assert 10 <= model.waiting.n_taken < 110, learner.name
        assert model.predict_one({"a": 0.0, "b": 0.0}) is not None
        assert model.clone().selection == model.selection


def test_a_monitor_tells_what_was_chosen():
    model = LASVMClassifier(**KERNEL, selection=Active(share=0.2))
    monitor = TrackingMonitor(model, every=50)
    for x, y in stream(600):
        monitor.learn_one(x, y)
    values = monitor.get()
    assert values["n_seen"] == 600
    assert values["n_examples"] == model.n_examples < 200
    assert monitor.history.column("n_seen")[-1] > 5 * monitor.history.column("n_examples")[-1] - 250
    assert "of 600 examples were learnt: Active" in monitor.about["selection"]
    assert "n_seen" not in TrackingMonitor(LASVMClassifier()).get()
