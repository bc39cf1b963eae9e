"""What holds for every learner of label sequences, beside what holds for all of sentences."""

import numpy as np
import pyarrow as pa
import pytest

import streamsvm
from streamsvm import LaRankSequenceLabeler, SequencePA, SequencePerceptron
from streamsvm.errors import LabelError, ParameterError
from streamsvm.structured import vocabulary
from streamsvm.structured.sequences import exact, greedy, inference, sentence_patterns
from streamsvm.structured.sequences.pairs import new_scratch
from tests.learners.test_all_learners import content
from tests.structured.examples import FRESH, FRESH_Y, X, Y, flat

CLASSES = [LaRankSequenceLabeler, SequencePerceptron, SequencePA]
CONFIGURATIONS = [(cls, params) for cls in CLASSES for params in cls._unit_test_params()]
every = pytest.mark.parametrize(
    ("cls", "params"),
    CONFIGURATIONS,
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)


def scores(model, tokens):
    """Return the scores of all labels at all tokens."""
    return np.array([list(row.values()) for row in model.decision_function_one(tokens)])


def learnt(cls, params, n=40):
    model = cls(**params)
    model.learn_many(X[:n], Y[:n])
    return model


@every
def test_what_is_predicted_before_learning_has_the_highest_score_and_is_right(cls, params):
    model, events = cls(**params), cls(**params)
    predicted = model.predict_then_learn_many(X, Y)
    for tokens, labels, before in zip(X, Y, predicted, strict=True):
        assert events.predict_one(tokens) == before
        events.learn_one(tokens, labels)
    assert content(model) == content(events) and predicted[0] == [None] * len(X[0])
    assert model.n_tokens == len(flat(Y))
    for _ in range(3):
        model.learn_many(X, Y)
    predicted = model.predict_many(FRESH)
    for tokens, labels in zip(FRESH, predicted, strict=True):
        scores = model.decision_function_one(tokens)
        assert [max(row, key=row.get) for row in scores] == labels
        assert [list(row) for row in scores] == [model.classes] * len(tokens)
    assert np.mean([a == b for a, b in zip(flat(predicted), flat(FRESH_Y), strict=True)]) > 0.55


@every
def test_weights_that_are_none_change_nothing(cls, params):
    model = learnt(cls, params, 10)
    before = content(model)
    for w in (-1.0, float("nan"), [1.0, 1.0], "heavy"):
        with pytest.raises(ParameterError):
            model.learn_many([X[11]], [Y[11]], w)
    assert content(model) == before


@every
def test_empty_and_single_and_unknown(cls, params):
    model = cls(**params)
    assert model.predict_one([]) == [] and model.predict_one(["a", "b"]) == [None, None]
    assert model.predict_many([]) == [] and model.decision_function_one(["a"]) == [{}]
    model.learn_one([], [])
    model.learn_many([], [])
    assert model.n_examples == 1 and model.classes == []
    model.learn_one(["a"], [7])
    assert model.predict_one(["never", "seen"]) == [7, 7]
    model.learn_many([[], ["b"], []], [[], [True], []])
    assert model.predict_many([[], ["b"]])[0] == [] and model.classes == [7, True]
    # Weight 0 records labels only; of equally good ones the first is predicted.
    model = cls(**params)
    model.learn_one(["a", "b"], ["A", np.str_("B")], 0.0)
    assert model.classes == ["A", "B"] and not model.solver.model.weights.any()
    assert model.predict_one(["a", "b", "c"]) == ["A"] * 3


@every
def test_labels_may_come_at_any_time_and_in_any_number(cls, params):
    model = cls(**params)
    for i in range(30):
        model.learn_one([[f"f{i}"]], [f"label {i}"])
        assert model.classes == [f"label {j}" for j in range(i + 1)]
    if "window" not in params and "max_support_patterns" not in params:
        assert model.predict_one([["f3"], ["f29"]])[1] == "label 29"


@every
def test_arrow_columns_and_numpy(cls, params):
    words, labels = [[t["w"] for t in s] for s in X], pa.array(Y)
    model, arrow = cls(**params), cls(**params)
    model.learn_many(words, Y)
    arrow.learn_many(pa.chunked_array([pa.array(words)]), labels)
    assert content(model) == content(arrow)
    found = arrow.predict_many(pa.array(words))
    assert isinstance(found, pa.Array) and found.to_pylist() == model.predict_many(words)
    dense = cls(**params)
    dense.learn_one(np.eye(3), ["a", "b", "a"])
    named = cls(**params)
    named.learn_one([{"0": 1.0}, {"1": 1}, {"2": True}], ["a", "b", "a"])
    assert content(dense) == content(named)


def test_labels_that_arrow_cannot_hold_together_are_named():
    model = SequencePerceptron()
    model.learn_many([["a", "b"]] * 5, [["A", 1]] * 5)
    assert model.predict_many([["a", "b"]]) == [["A", 1]]
    with pytest.raises(LabelError, match="X.to_pylist"):
        model.predict_many(pa.array([["a", "b"]]))


@every
def test_the_limits_of_features_and_labels(cls, params):
    model = cls(**params, max_features=2, max_classes=3)
    model.learn_one([["a", "b", "c"], ["d"]], ["A", "B"])
    assert model.n_features == 2 and model.counters["features_ignored"] == 2
    model.predict_one([["c", "zzz"]])
    assert model.n_features == 2
    with pytest.raises(LabelError, match="max_classes"):
        model.learn_many([["a"], ["b"]], [["C"], ["D"]])
    assert model.classes == ["A", "B"]
    model.learn_one(["c"], ["C"])
    model.learn_one(["a"], ["A"])
    assert model.classes == ["A", "B", "C"]


@pytest.mark.parametrize("inference", ["greedy", "exact"])
def test_finish_reaches_the_gap(inference):
    model = LaRankSequenceLabeler(inference, C=0.5, seed=0)
    model.learn_many(X, Y)
    dual = model.dual
    assert model.finish() <= 0.5 and model.kept_gap().total <= 0.5
    assert model.finish(X, Y) <= 0.5
    gap = model.finish(X, Y, gap=0.05)
    assert gap <= 0.05 and model.dual > dual
    # From another order of the examples, the same optimum.
    other = LaRankSequenceLabeler(inference, C=0.5, seed=5)
    other.learn_many(X[::-1], Y[::-1])
    rest = other.finish(X[::-1], Y[::-1], gap=0.05)
    assert abs(other.dual - model.dual) <= gap + rest
    with pytest.raises(ParameterError, match="give all of them"):
        model.finish(X[:3], Y[:3])
    with pytest.raises(ParameterError, match="labels that were not learnt"):
        model.finish(X, [["new" for _ in labels] for labels in Y])
    with pytest.raises(ParameterError, match="window"):
        LaRankSequenceLabeler(window=5).finish(X, Y)
    assert LaRankSequenceLabeler(inference).finish() == 0.0


@every
@pytest.mark.parametrize("place", ["grown", "grow", "learnt_rows"])
def test_an_interruption_before_learning_leaves_the_model_as_it_was(
    cls, params, place, tmp_path, monkeypatch
):
    model, never = learnt(cls, params), learnt(cls, params)
    predicted, n_features = model.predict_many(FRESH), model.n_features
    owner = {"grown": inference, "learnt_rows": vocabulary}.get(place, model.solver)
    work = getattr(owner, place)

    def interrupted(*arguments):
        work(*arguments)
        raise KeyboardInterrupt

    new = [[{"w": f"new{i}"} for i in range(3000)]]
    monkeypatch.setattr(owner, place, interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn_many(new, [[f"label{i % 40}" for i in range(3000)]])
    monkeypatch.undo()
    assert model.n_features == n_features and model.predict_many(FRESH) == predicted
    model.decision_function_one(new[0])
    model.save(tmp_path / "m.svm")
    for one in (model, streamsvm.load(tmp_path / "m.svm"), never):
        one.learn_many(FRESH, FRESH_Y)
        assert content(one) == content(model)


@pytest.mark.parametrize(
    ("inference", "module", "remove"),
    [("greedy", greedy, greedy.remove), ("exact", exact, sentence_patterns.remove)],
)
def test_an_interruption_while_learning_loses_no_pattern(inference, module, remove, monkeypatch):
    model, learn, calls = LaRankSequenceLabeler(inference, seed=1), module.learn, []

    def interrupted(*arguments):
        learn(*arguments)
        calls.append(1)
        # After patterns were grown, and more was learnt.
        if len(calls) == 3:
            raise KeyboardInterrupt

    def run(*arguments):
        interrupted(*arguments)
        return arguments[-1 if inference == "greedy" else -2] + 1

    monkeypatch.setattr(module, "learn", run)
    with pytest.raises(KeyboardInterrupt):
        model.learn_many(X * 20, Y * 20)
    monkeypatch.undo()
    # All weights are made of the patterns that are left.
    active = model.solver.patterns.active
    for slot in active.members[: active.counts[0].n_members].copy():
        m, p = model.solver.model, model.solver.patterns
        if module is exact:
            remove(m, p, model.order_, slot, new_scratch(10, *m.weights.shape))
        else:
            remove(m, p, None, model.order_, slot)
    m = model.solver.model
    assert max(np.abs(part).max() for part in (m.weights, m.moves)) < 1e-4
    assert abs(m.info[0].square_norm) < 1e-4
    model.learn_many(X, Y)
