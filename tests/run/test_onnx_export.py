"""Exported models predict what the models do, by onnxruntime; others are refused."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import streamsvm
from connectors import one_hot
from connectors.encoding import OTHER
from streamsvm import (
    ActiveLearner,
    AdaptiveSVMClassifier,
    AmbiguousSVMClassifier,
    ConformalSets,
    HullerClassifier,
    KernelPerceptronClassifier,
    LaRankClassifier,
    LASVMClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingMonitor,
    kernels,
    to_onnx,
)
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.learner import Learner

NAMES = ["size", "far", "rare", "flag"]


def session_of(model, features=None):
    """Return onnxruntime's session of an exported model, and what it says of the model."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime checks the graphs")
    session = runtime.InferenceSession(to_onnx(model, features=features).SerializeToString())
    said = session.get_modelmeta().custom_metadata_map
    names = {"features", "texts", "classes"} & said.keys()
    return session, {name: json.loads(said[name]) for name in names}


def rows(n, seed):
    """Features of different scales, one of them far from 0, and missing values."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)) * [1.0, 30.0, 1.0, 0.0] + [0.0, 5000.0, 2.0, 0.0]
    x[:, 3] = rng.integers(0, 2, n)
    place = np.sin(2.0 * x[:, 0]) + (x[:, 1] - 5000.0) / 30.0 + x[:, 3]
    x[rng.random((n, 4)) < 0.05] = np.nan
    return x, place


def frame(x):
    return pa.RecordBatch.from_arrays([pa.array(column) for column in x.T], NAMES)


def trained(model, labels_of):
    x, place = rows(700, 1)
    labels = labels_of(place)
    if isinstance(model, Learner):
        model.learn_many(frame(x), labels)
    else:
        for start in range(0, 700, 100):
            part = frame(x[start : start + 100])
            streamsvm.predict_then_learn_many(model, part, labels[start : start + 100])
    return model


def two(place):
    return [bool(p > 0.5) for p in place]


def texts(place):
    return ["low" if p < 0.5 else "high" for p in place]


def three(place):
    return np.digitize(place, [0.0, 1.0]).tolist()


MODELS = [
    (StandardScaler() | LASVMClassifier(seed=1), two),
    (LASVMClassifier(scale=True, seed=1), texts),
    (StandardScaler() | LASVMClassifier(kernels.Polynomial(2, 0.3), missing="zero", seed=1), two),
    (StandardScaler(clip=1.5) | KernelPerceptronClassifier(kernels.Linear(0.5), seed=1), texts),
    (StandardScaler() | LaRankClassifier(kernels.RBF(0.3), seed=1), three),
    (StandardScaler() | SVMSGDClassifier(seed=1), two),
    (StandardScaler() | SVMSGDClassifier(seed=1), three),
    (StandardScaler() | AdaptiveSVMClassifier(seed=1), two),
    (AdaptiveSVMClassifier(seed=1, last_label=False), three),
    (StandardScaler() | AmbiguousSVMClassifier(), three),
    (StandardScaler() | LASVMClassifier(kernels.RBF(0.5), seed=1), three),
    (StandardScaler() | LASVMClassifier(kernels.RBF(0.5), multiclass="ovr", seed=1), three),
]


@pytest.mark.parametrize(("model", "labels_of"), MODELS)
def test_the_graph_gives_labels_decisions_and_probabilities(model, labels_of):
    model = trained(model, labels_of)
    x, _ = rows(300, 2)
    order = [2, 0, 3, 1]
    names = [NAMES[c] for c in order]
    session, about = session_of(model, names)
    given = {"features": x[:, order]}
    label, decision, probabilities = session.run(["label", "decision", "probabilities"], given)
    assert about["features"] == names
    classes = about["classes"]
    assert {*classes} == {*labels_of(rows(700, 1)[1])}
    # River's pipelines have no `decision_function_many`, and pandas is not needed for this.
    learner = list(model.steps.values())[-1] if hasattr(model, "steps") else model
    given = learner.matrix_of(frame(x))
    if learner is not model:
        given = next(iter(model.steps.values())).transform_matrix(given)
    wanted = learner.decision_function_many(given)
    np.testing.assert_allclose(decision, wanted, rtol=1e-5, atol=1e-5)
    margins = learner.margins_many(given)
    found = [learner.probabilities_of(m) for m in margins.tolist()]
    wanted_p = [[p[c] for c in classes] for p in found]
    np.testing.assert_allclose(probabilities, wanted_p, atol=1e-5)
    expected = np.array(learner.targets.labels_of(margins).tolist())
    is_near = learner.targets.outputs.distances(margins) < 1e-5
    assert len({*label.tolist()}) == len(classes) and is_near.mean() < 0.01
    assert ((label == expected) | is_near).all()


@pytest.mark.parametrize(
    "given", [["shape", "size", "col"], ["col=red", "size", "shape", "col=b=1"]]
)
def test_texts_are_taken_by_their_columns(given):
    random, n = np.random.default_rng(3), 80
    columns = {"size": random.normal(size=n), "col": random.choice(["red", "b=1"], n)}
    table = pa.table(columns | {"shape": random.choice(["a", "b", OTHER], n)})
    y = pc.equal(table["col"], "red").to_pylist()
    model = SVMSGDClassifier(seed=1)
    model.learn_many(one_hot(table), y)
    texts = {"col": table["col"].to_pylist(), "shape": table["shape"].to_pylist()}
    texts["col"][3], texts["shape"][4], texts["shape"][5] = "unknown", "", "unknown"
    values = {"size": table["size"].to_numpy(), **texts}
    values |= {f"col={text}": np.array(texts["col"]) == text for text in ("red", "b=1")}
    session, about = session_of(model, given)
    inputs = {
        "features": np.array([values[c] for c in about["features"]], float).T,
        "texts": np.array([values[c] for c in about["texts"]], object).T,
    }
    assert about["texts"] == [name for name in given if name in texts]
    assert about["features"] == [name for name in given if name not in texts]
    label, decision, _ = session.run(None, inputs)
    events = [
        {n: v or None for n, v in zip(texts, row, strict=True)}
        for row in zip(*texts.values(), strict=True)
    ]
    events = [one_hot({"size": s, **x}, set(model.feature_names))
              for s, x in zip(values["size"].tolist(), events, strict=True)]  # fmt: skip
    wanted = [model.decision_function_one(x) for x in events]
    np.testing.assert_allclose(decision, wanted, atol=1e-9)
    assert label.tolist() == [model.predict_one(x) for x in events]


def test_no_bias_is_invented_where_the_model_has_none():
    x, far = np.random.default_rng(1).normal(size=(300, 4)), np.full((1, 4), 1e4)
    y = x[:, 0] * x[:, 1] > 0
    # Where nothing decides, the label that came first is predicted.
    for labels in (y, ~y):
        model = KernelPerceptronClassifier(kernels.RBF(0.5), seed=1)
        model.learn_many(x, labels.tolist())
        session, _ = session_of(model)
        label, decision, _ = session.run(None, {"features": far})
        assert decision == model.decision_function_many(far) == 0.0
        assert label.tolist() == model.predict_many(far).tolist() == [labels[0]]


@pytest.mark.parametrize("scale", [1e2, 1e3])
def test_what_cancels_is_exported_too_and_is_near_as_a_share_of_what_cancels(scale):
    x = scale * np.random.default_rng(1).normal(size=(500, 4))
    # No plane separates these labels: coefficients grow.
    model = LASVMClassifier(kernels.Linear(), seed=1)
    model.learn_many(x[:400], (x[:400, 0] * x[:400, 1] > 0).tolist())
    decision = session_of(model)[0].run(["decision"], {"features": x})[0]
    z, coefficients, _ = model.solver.expansion(4)
    sizes = np.linalg.norm(x, axis=1) * (np.linalg.norm(z, axis=1) @ np.abs(coefficients))
    far = np.abs(decision - model.decision_function_many(x)) / (sizes + abs(model.bias))
    assert far.max() < 1e-6


def test_what_no_graph_can_hold_is_refused():
    x, place = rows(60, 1)
    of_texts = SVMSGDClassifier(seed=1)
    columns = [pa.array(column) for column in x.T[:2]]
    of_texts.learn_many(pa.RecordBatch.from_arrays(columns, ["size", "colour=red"]), two(place))
    large, empty = LASVMClassifier(), KernelPerceptronClassifier(kernels.RBF(0.5))
    for label in (1, 2**70):
        large.learn_one({"size": float(label)}, label)
        empty.learn_one({"size": 1.0}, label % 2, w=0.0)
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 3))
    rounding = HullerClassifier(kernels.Linear(), seed=1)
    rounding.learn_many(x, x[:, 0] + random.normal(size=300) > 0.0)
    cases = [
        (rounding, None, "own support vectors would get another label"),
        (large, None, "a label is beyond 64 bits"),
        (empty, None, "has no support vectors"),
        (LASVMClassifier(), None, "has not learnt two labels"),
        (LASVMClassifier(hashing=64), None, "features are names that are hashed"),
        (of_texts, None, "has learnt text"),
        (of_texts, ["size"], "lacks 1 that the model knows"),
        (of_texts, ["size", "colour=red", "sise"], "that the model does not know: .'sise'"),
        (ConformalSets(large), None, r"ConformalSets cannot .* to_onnx\(model.model\)"),
        (ActiveLearner(large), None, r"ActiveLearner cannot .* to_onnx\(model.classifier\)"),
        (TrackingMonitor(LASVMClassifier()), None, r"Monitor cannot .* to_onnx\(model.model\)"),
        (streamsvm.Chain() | streamsvm.LaRankSequenceLabeler(), None, "use a learner"),
    ]
    for model, features, words in cases:
        with pytest.raises(ParameterError, match=words):
            to_onnx(model, features)
