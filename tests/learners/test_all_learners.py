"""What every registered learner must do, in each configuration of its `_unit_test_params`."""

import contextlib
import copy
import inspect
import pickle
import random
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import streamsvm
from streamsvm import kernels
from streamsvm.errors import FeatureError, LabelError, ParameterError
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner
from streamsvm.learners.bases.linear.linear_learner import LinearLearner
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.model_files import codec
from streamsvm.models.kernel import kernel_solver
from streamsvm.models.linear import linear_model
from streamsvm.support.interruptions import append_result
from tests.slow import compiles

# Compiled for these tests alone, of bounds that other tests of their solvers know.
RARE = {"larank-3": "larank-3", "sbp-3": "sbp-3", "tracking-2": "TrackingSVMClassifier bounds"}


def marks_of(name):
    return compiles(RARE[name]) if name in RARE else ()


CASES = [
    pytest.param(learner.cls, parameters, id=name, marks=marks_of(name))
    for learner in registered_learners("rows")
    for i, parameters in enumerate(learner.cls._unit_test_params())
    for name in [f"{learner.name}-{i}"]
]
LEARNERS_OF_ROWS = [
    case for case in CASES if issubclass(case.values[0], (KernelLearner, LinearLearner))
]
N = 150
all_learners = pytest.mark.parametrize(("cls", "parameters"), CASES)


def stream(n=N, n_classes=2, seed=0):
    draw = random.Random(seed).random
    for _ in range(n):
        x = {"a": 2.0 * draw() - 1.0, "b": 2.0 * draw() - 1.0}
        inner = x["a"] ** 2 + x["b"] ** 2 < 0.6
        yield x, int(inner) + (1 if n_classes > 2 and inner and x["a"] > 0.2 else 0)


def labels_of(model):
    return 2 if model.most_classes == 2 else 3


def learnt(model, events):
    for x, y in events:
        model.predict_one(x)
        model.learn_one(x, y)
    return model


def by_events(model, x, y):
    """Predict and learn rows as events, one after the other; return what was predicted."""
    predicted = []
    for row, label in zip(x.tolist(), np.asarray(y).tolist(), strict=True):
        event = dict(enumerate(row))
        predicted.append(model.predict_one(event))
        model.learn_one(event, label)
    return predicted


def content(model):
    """Return all that a file would hold of the model, but for how cached rows were found."""
    with model.lock:
        values, arrays = codec.to_file(model)
    kept = {name: (a.dtype, a.shape, a.tobytes()) for name, a in arrays.items()}
    kept = {name: kept[name] for name in kept if not name.endswith("cache_counts")}
    return copy.deepcopy(values), kept


def matrix(events):
    return np.array([[x["a"], x["b"]] for x, _ in events], np.float32)


def other_way(found):
    """Return what a model says of the labels 0 and 1, as it would say it of 1 and 0."""
    if isinstance(found, dict):
        is_by_label = set(found) <= {0, 1}
        found = found.items()
        return {1 - k: v for k, v in found} if is_by_label else {k: -v for k, v in found}
    return -np.array(found)


@all_learners
def test_the_larger_label_is_positive_whichever_comes_first(cls, parameters):
    """To a solver a stream and the one with 0 and 1 exchanged are the same."""
    events = list(stream(60))
    mirrored = [(x, 1 - y) for x, y in events]
    model, other = learnt(cls(**parameters), events), learnt(cls(**parameters), mirrored)
    for x, _ in stream(20, seed=1):
        assert other.predict_one(x) == 1 - model.predict_one(x)
        assert other.decision_function_one(x) == other_way(model.decision_function_one(x))
        assert other.predict_proba_one(x) == other_way(model.predict_proba_one(x))
    rows = pa.RecordBatch.from_pylist([x for x, _ in stream(20, seed=1)])
    margins, others = (one.decision_function_many(rows) for one in (model, other))
    if margins.ndim > 1:
        # Columns are those of the labels in the order in which they came.
        assert (others == margins).all()
        return
    assert (others == -margins).all()
    for name in ("bias", "bias_", "intercept", "weights"):
        if hasattr(model, name) and name not in inspect.signature(cls).parameters:
            found, wanted = getattr(other, name), other_way(getattr(model, name))
            assert np.array_equal(found, wanted)


def test_each_learner_is_in_the_table_of_the_readme_or_of_those_to_compare():
    root, rows = Path(__file__).resolve().parents[2], []
    for page in ("README.md", "docs/learners_to_compare.md"):
        text = (root / page).read_text(encoding="utf-8")
        rows += re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text, re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set(rows) == {
        (learner.name, learner.cls.__name__) for learner in registered_learners("rows")
    }
    assert {cls for _, cls in rows} <= set(streamsvm.__all__)


@pytest.mark.parametrize("name", [one.name for one in registered_learners("rows")])
def test_a_class_too_many_is_refused(name):
    learner = next(one for one in registered_learners("rows") if one.name == name)
    parameters = next(learner.cls._unit_test_params())
    most = learner.cls(**parameters).most_classes
    if most == 2:
        return
    assert most is not None and learner.cls(**parameters).max_classes == most
    model = learnt(learner.cls(**parameters, max_classes=3), stream(30, n_classes=3))
    before = content(model)
    for one in (model, pickle.loads(pickle.dumps(model))):
        assert one.clone().most_classes == one.most_classes == 3
        with pytest.raises(LabelError, match=r"5 is class number 4: at most 3 .*max_classes"):
            one.learn_one({"a": 1.0, "new": 1.0}, 5)
        with pytest.raises(LabelError, match=r"at most 3 .*Raise max_classes"):
            one.learn_many(pd.DataFrame({"a": [1.0, 2.0, 3.0]}), [1, 5, 6])
        assert len(one.classes) == 3 and content(one) == before
        one.learn_one({"a": 1.0}, 2)
    raised = learnt(learner.cls(**parameters, max_classes=4), stream(30, n_classes=3))
    raised.learn_one({"a": 1.0}, 5)
    assert len(raised.classes) == 4
    with pytest.raises(ParameterError, match="max_classes"):
        learner.cls(**parameters, max_classes=1)


# What the adaptive learner affords depends on what it has to compute.
CACHED = [
    case
    for case in CASES
    if "cache_mb" in inspect.signature(case.values[0]).parameters
    and case.values[0] is not streamsvm.AdaptiveSVMClassifier
]


@pytest.mark.parametrize(("cls", "parameters"), CACHED)
def test_the_size_of_the_cache_changes_nothing(cls, parameters):
    small, large = (cls(**parameters | {"cache_mb": mb}) for mb in (0.0, 100.0))
    events = list(stream(n_classes=labels_of(small)))
    rows = pd.DataFrame([x for x, _ in events])
    for model in (small, large):
        model.learn_many(rows[:90], [label for _, label in events[:90]])
        learnt(model, events[90:])
    decisions = [model.decision_function_many(rows) for model in (small, large)]
    np.testing.assert_array_equal(*decisions)
    if hasattr(small, "kept_numbers"):
        assert {*small.kept_numbers()} == {*large.kept_numbers()} and small.dual == large.dual


@all_learners
def test_an_example_of_weight_0_teaches_only_its_label(cls, parameters):
    model = learnt(cls(**parameters), stream(40))
    probe, rows = np.random.default_rng(0).normal(size=(20, 2)), pa.table({"a": [9.0], "b": [-9.0]})
    probe = pd.DataFrame(probe, columns=["a", "b"])
    before = np.asarray(model.decision_function_many(probe))
    for label in (0, 1):
        model.learn_many(rows, [label], w=0.0)
    np.testing.assert_array_equal(model.decision_function_many(probe), before)
    # Also where it makes room for more features.
    model.learn_one({f"new {i}": 1.0 for i in range(20)}, 1, w=0.0)
    np.testing.assert_allclose(model.decision_function_many(probe), before, rtol=1e-6, atol=1e-9)
    fresh = cls(**parameters)
    fresh.learn_one({"a": 1.0}, 1, w=0.0)
    assert fresh.classes == [1]


def saved(model, path):
    streamsvm.save(model, path)
    return streamsvm.load(path)


COPIES = {
    "saved": saved,
    "pickled": lambda model, path: pickle.loads(pickle.dumps(model)),
    "copied": lambda model, path: copy.deepcopy(model),
    "copied by copy.copy": lambda model, path: copy.copy(model),
    "cloned": lambda model, path: model.clone(include_attributes=True),
}


@all_learners
def test_a_file_after_an_interruption_has_the_names_that_are_known(cls, parameters, tmp_path):
    # As Ctrl-C leaves it between a new name and the room for its feature.
    model = cls(**parameters)
    events = list(stream(60, labels_of(model)))
    for x, y in events:
        model.learn_one(x, y)
    model.schema.extend(["new", "newer"])
    other = saved(model, tmp_path / "m.svm")
    for one in (model, other):
        for x, y in events:
            one.learn_one(x | {"newer": 1.0}, y)
    assert content(one) == content(model)


@all_learners
def test_class_weights_are_copied(cls, parameters):
    if "class_weight" not in inspect.signature(cls).parameters or parameters.get("mode") == "PA":
        with pytest.raises((ParameterError, TypeError)):
            cls(**parameters).class_weight = {1: 2.0}
        return
    weights = {1: 2.0}
    model = cls(**parameters | {"class_weight": weights})
    weights[1] = 7.0
    model.class_weight[0] = 9.0
    assert model.class_weight == {1: 2.0}


@all_learners
def test_a_clone_has_learnt_nothing(cls, parameters):
    model = learnt(cls(**parameters), stream(20))
    fresh = model.clone()
    assert repr(fresh) == repr(model) == repr(cls(**parameters)) and fresh.n_examples == 0
    assert fresh.classes == [] and fresh.feature_names == []


GOOD, INF, NAN = {"a": 1.0, "new": 1.0}, float("inf"), float("nan")
TWO_ROWS = pd.DataFrame({"a": [1.0, 2.0], "new": [1.0, 1.0]})
REFUSED = [
    *(
        (FeatureError, f"'{name}'", getter, (GOOD | {name: value}, *label))
        for value in ("1.5", b"1", INF, -INF, 1e39, 10**400, {"x": 1}, 1j, [1.0])
        for name in ("b", "newer")
        for getter, label in (("learn_one", (1,)), ("predict_one", ()))
    ),
    (LabelError, "missing", "learn_one", (GOOD, None)),
    (LabelError, "missing", "learn_one", (GOOD, NAN)),
    (LabelError, "hashable", "learn_one", (GOOD, [{}])),
    (ParameterError, "w=-1", "learn_one", (GOOD, 1, -1)),
    (ParameterError, "w=nan", "learn_one", (GOOD, 1, NAN)),
    (ParameterError, r"w=1e\+13: weights are .* from 0 to 1e\+12", "learn_one", (GOOD, 1, 1e13)),
    (
        FeatureError,
        "row 1: feature 'b' is inf",
        "learn_many",
        (TWO_ROWS.assign(b=[1, INF]), [0, 1]),
    ),
    (FeatureError, "1 labels", "learn_many", (TWO_ROWS, [0])),
    (LabelError, "missing", "learn_many", (TWO_ROWS, [0, None])),
    (ParameterError, "weights are numbers from 0", "learn_many", (TWO_ROWS, [0, 1], [1.0, -1.0])),
    (ParameterError, "weights are numbers from 0", "learn_many", (TWO_ROWS, [0, 1], [1.0, INF])),
    (FeatureError, "column 'a'", "learn_many", (TWO_ROWS.assign(a=["x", "y"]), [0, 1])),
    (FeatureError, "no batch", "learn_many", (3, [0, 1])),
]


@all_learners
def test_what_is_refused_changes_nothing(cls, parameters):
    events = list(stream(40 + len(REFUSED)))
    model = learnt(cls(**parameters), events[:40])
    twin = copy.deepcopy(model)
    for (x, y), (error, words, method, given) in zip(events[40:], REFUSED, strict=True):
        before = content(model)
        with pytest.raises(error, match=words):
            getattr(model, method)(*given)
        assert content(model) == before, (method, given)
        # Also between the prediction of an event and its label.
        for one in (model, twin):
            one.predict_one(x)
        with pytest.raises(error, match=words):
            getattr(model, method)(*given)
        for one in (model, twin):
            one.learn_one(x, y)
    assert content(model) == content(twin)
    with pytest.raises(ParameterError, match="ids"):
        model.learn_many(TWO_ROWS, [0, 1], ids=[0, 0])
    assert content(model) == content(twin)


@pytest.mark.parametrize(
    ("cls", "parameters"),
    [case for case in CASES if "seed" in inspect.signature(case.values[0]).parameters],
)
@pytest.mark.parametrize("seed", [-1, 1.5, "x", 2**256, True])
def test_a_seed_that_is_none_is_refused(cls, parameters, seed):
    with pytest.raises(ParameterError, match=f"seed={re.escape(repr(seed))}: use a whole number"):
        cls(**parameters | {"seed": seed})


@all_learners
def test_predictions_before_any_label(cls, parameters, tmp_path):
    x, rows, table = {"a": 1.0}, np.ones((2, 2)), pa.table({"a": [1.0, 2.0]})
    for model in (cls(**parameters), saved(cls(**parameters), tmp_path / "m.svm")):
        assert model.predict_one(x) is None
        assert model.predict_proba_one(x) in ({}, {False: 0.5, True: 0.5})
        assert model.predict_many(rows).tolist() == model.predict_many(table).to_pylist()
        assert model.predict_many(rows).tolist() == [None, None]
        assert list(model.predict_proba_many(rows)) == list(model.predict_proba_one(x))
        assert model.predict_proba_many(table).column_names in ([], ["False", "True"])
        assert len(model.decision_function_many(rows)) == 2
        assert not model.decision_function_one(x)
        if hasattr(model, "finish"):
            model.finish()
        assert model.n_examples == 0 and model.memory_usage >= 0


@all_learners
def test_with_one_label_no_other_is_predicted(cls, parameters, tmp_path):
    rows = np.array([[1.0, -2.0], [-3.0, 1.0]])
    x, table = {0: 1.0, 1: -2.0}, pa.table({"0": rows[:, 0], "1": rows[:, 1]})
    for label in ("spam", 7, -1):
        one, many = cls(**parameters), cls(**parameters)
        for _ in range(2):
            one.learn_one(x, label)
        assert many.predict_then_learn_many(rows[[0, 0]], [label] * 2) == [None, label]
        for model in (one, saved(one, tmp_path / "m.svm"), many):
            assert model.predict_one(x) == model.predict_one({}) == label
            assert model.predict_proba_one(x) == {label: 1.0}
            assert LabelColumn.of(model.predict_many(table)).tolist() == [label] * 2
            found = model.predict_proba_many(rows)
            assert {y: p.tolist() for y, p in found.items()} == {label: [1.0, 1.0]}
            assert len(model.decision_function_many(rows)) == 2


@pytest.mark.parametrize(("cls", "parameters"), LEARNERS_OF_ROWS)
@pytest.mark.parametrize("call", [1, 3])
def test_an_interrupted_batch_has_learnt_its_first_rows(cls, parameters, call, monkeypatch):
    """As Ctrl-C does: the exception comes when compiled code has returned."""
    model, calls = cls(**parameters), []
    events = list(stream(400, labels_of(model)))
    x, y = matrix(events), [label for _, label in events]
    model.learn_many(x[:100], y[:100])

    def interrupted(results, function, arguments):
        append_result(results, function, arguments)
        # Not those of candidates for scale and width.
        if arguments[0] is model.state:
            calls.append(1)
            if len(calls) == call:
                raise KeyboardInterrupt

    for module in (kernel_solver, linear_model):
        monkeypatch.setattr(module, "append_result", interrupted)
    with contextlib.suppress(KeyboardInterrupt):
        model.learn_many(x[100:], y[100:])
    monkeypatch.undo()
    assert len(calls) >= 1
    n, whole = model.n_examples, cls(**parameters)
    whole.learn_many(x[:n], y[:n])
    for one in (model, whole):
        assert one.n_examples == n
    np.testing.assert_array_equal(model.decision_function_many(x), whole.decision_function_many(x))
    for one in (model, whole):
        one.learn_many(x[n:], y[n:])
    np.testing.assert_array_equal(model.decision_function_many(x), whole.decision_function_many(x))


WEIGHED = {
    one.name: one
    for one in registered_learners()
    if "class_weight" in inspect.signature(one.cls).parameters
}


@pytest.mark.parametrize("name", WEIGHED)
def test_class_weights_may_be_changed_at_any_time(name):
    """They hold for the examples that follow, as weights of these would."""
    learner, is_of_rows = WEIGHED[name], WEIGHED[name].takes == "rows"
    known = inspect.signature(learner.cls).parameters
    given = {"seed": 1} if "seed" in known else {}
    if is_of_rows and "kernel" in known:
        # A trial of scale and width would learn the first examples again.
        given["kernel"] = kernels.RBF(gamma=1.0)
        # So small that it is reached.
        given |= {"C": 0.1} if "C" in known else {}
    events = [(x, y) if is_of_rows else ([x], [y]) for x, y in stream(80)]
    model = learner.cls(**given)
    for x, y in events[:40]:
        model.learn_one(x, y)
    weighted, same = copy.deepcopy(model), copy.deepcopy(model)
    model.class_weight = {1: 3.0}
    assert model.class_weight == model.clone().class_weight == {1: 3.0}
    for x, y in events[40:]:
        model.learn_one(x, y)
        weighted.learn_one(x, y, 3.0 if y in (1, [1]) else 1.0)
        same.learn_one(x, y)
    found, of_weights, without = (one.decision_function_one(x) for one in (model, weighted, same))
    # The adaptive learner learns the last examples again, with the weights that hold then.
    assert found != without and (found == of_weights or name == "adaptive")
    # Given from the start it does what weights from the start do.
    model, same = learner.cls(**given, class_weight={1: 3.0}), learner.cls(**given)
    for x, y in events:
        model.learn_one(x, y)
        same.learn_one(x, y, 3.0 if y in (1, [1]) else 1.0)
    assert model.decision_function_one(x) == same.decision_function_one(x)
    for wrong in ({1: -1.0}, {1: 1e300}, "even", 2.0):
        with pytest.raises(ParameterError, match="class_weight"):
            model.class_weight = wrong
        with pytest.raises(ParameterError, match="class_weight"):
            learner.cls(**given, class_weight=wrong)
    assert model.class_weight == {1: 3.0}
    model.class_weight = None
    model.learn_one(*events[0])
    assert model.class_weight is None
