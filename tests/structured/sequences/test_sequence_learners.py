"""What holds for every learner of label sequences, in every configuration."""

import copy
import itertools
import pickle

import numpy as np
import pyarrow as pa
import pytest

import streamsvm
from streamsvm import Chain, LaRankSequenceLabeler, SequencePA, SequencePerceptron
from streamsvm.errors import FeatureError, LabelError, ParameterError
from streamsvm.structured import vocabulary
from streamsvm.structured.sequences import exact, greedy, inference, sentence_patterns
from streamsvm.structured.sequences.pairs import new_scratch

CLASSES = [LaRankSequenceLabeler, SequencePerceptron, SequencePA]
CONFIGURATIONS = [(cls, params) for cls in CLASSES for params in cls._unit_test_params()]
every = pytest.mark.parametrize(
    ("cls", "params"),
    CONFIGURATIONS,
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)


def chunks(n=40, seed=0):
    """Return sentences of dicts and their labels: runs of B I I between O."""
    random, X, y = np.random.default_rng(seed), [], []
    for _ in range(n):
        tokens, labels = [], []
        for _ in range(random.integers(1, 9)):
            inside = bool(labels) and labels[-1] != "O" and random.random() < 0.6
            labels.append("I" if inside else random.choice(["B", "O"]))
            word = f"{labels[-1] if random.random() < 0.7 else 'x'}{random.integers(4)}"
            tokens.append(
                {"w": word, "size": float(random.normal()), "long": random.random() < 0.5}
            )
        X.append(tokens)
        y.append([str(label) for label in labels])
    return X, y


def flat(lists):
    """Return the members of all lists."""
    return list(itertools.chain.from_iterable(lists))


def scores(model, tokens):
    """Return the scores of all labels at all tokens."""
    return np.array([list(row.values()) for row in model.decision_function_one(tokens)])


X, Y = chunks()
FRESH, FRESH_Y = chunks(20, seed=1)


def learnt(cls, params, n=40):
    model = cls(**params)
    model.learn_many(X[:n], Y[:n])
    return model


def arrays_of(model):
    """Return all weights and coefficients in use."""
    m, n = model.solver.model, len(model.classes)
    # Weights have no rows if there is a kernel.
    parts = [m.weights[: model.n_features, :n], m.moves[:, : n + 1, :n], m.cost[:n]]
    if model.solver.is_averaged:
        parts += [m.late[: model.n_features, :n], m.late_moves[:, : n + 1, :n]]
    counters = np.array(list(model.counters.values()))
    return [*parts, counters, np.sort(model.solver.patterns.beta.ravel())[::-1][:50]]


def same(a, b):
    return all((x == y).all() for x, y in zip(arrays_of(a), arrays_of(b), strict=True))


@every
def test_events_and_batches_of_any_size_give_the_same_model(cls, params):
    events, parts = cls(**params), cls(**params)
    for tokens, labels in zip(X, Y, strict=True):
        events.learn_one(tokens, labels)
    for i in range(0, len(X), 7):
        parts.learn_many(X[i : i + 7], Y[i : i + 7])
    whole = learnt(cls, params)
    assert same(events, whole) and same(parts, whole)
    assert [whole.predict_one(tokens) for tokens in FRESH] == whole.predict_many(FRESH)
    assert whole.n_examples == len(X) and whole.n_tokens == sum(map(len, Y))


@every
def test_it_learns(cls, params):
    model = learnt(cls, params)
    for _ in range(3):
        model.learn_many(X, Y)
    predicted = flat(model.predict_many(FRESH))
    right = np.mean([a == b for a, b in zip(predicted, flat(FRESH_Y), strict=True)])
    assert right > 0.55


@every
def test_predicting_before_learning_is_no_extra_model(cls, params):
    model, events = cls(**params), cls(**params)
    predicted = model.predict_then_learn_many(X, Y)
    for tokens, labels, before in zip(X, Y, predicted, strict=True):
        assert events.predict_one(tokens) == before
        events.learn_one(tokens, labels)
    assert same(model, events)
    assert predicted[0] == [None] * len(X[0])


@every
def test_files_copies_and_pickles_continue_alike(cls, params, tmp_path):
    model = learnt(cls, params, 25)
    model.save(tmp_path / "m.svm")
    others = [
        streamsvm.load(tmp_path / "m.svm"),
        copy.deepcopy(model),
        copy.copy(model),
        pickle.loads(pickle.dumps(model)),
        model.clone(include_attributes=True),
    ]
    before = model.predict_many(FRESH)
    for other in others:
        assert other.predict_many(FRESH) == before
        assert (scores(other, FRESH[0]) == scores(model, FRESH[0])).all()
    model.learn_many(X[25:], Y[25:])
    after = scores(model, FRESH[3])
    for other in others:
        assert other.predict_many(FRESH) == before, "it shares memory with the original"
        other.learn_many(X[25:], Y[25:])
        assert (scores(other, FRESH[3]) == after).all() and same(other, model)
        assert other.n_examples == model.n_examples and other.counters == model.counters
    fresh = model.clone()
    assert fresh.n_examples == 0 and fresh._get_params() == model._get_params()


@every
def test_the_highest_score_is_predicted(cls, params):
    model = learnt(cls, params)
    for tokens in FRESH:
        scores = model.decision_function_one(tokens)
        assert [max(row, key=row.get) for row in scores] == model.predict_one(tokens)
        assert [list(row) for row in scores] == [model.classes] * len(tokens)


@every
def test_what_cannot_be_learnt_changes_nothing(cls, params):
    model, other = learnt(cls, params, 10), learnt(cls, params, 10)
    n_features = model.n_features
    bad = [
        ([{"new": float("nan")}], ["B"], FeatureError),
        ([{"new": None}], ["B"], FeatureError),
        (["new", 3], ["B", "B"], FeatureError),
        ("new", ["B"], FeatureError),
        ([{"new": 1.0}], [None], LabelError),
        ([{"new": 1.0}], [float("nan")], LabelError),
        ([{"new": 1.0}], [["B"]], LabelError),
        ([{"new": 1.0}], ["B", "B"], LabelError),
        ([{"new": 1.0}], [], LabelError),
        ([{"new": 1.0}], "B", LabelError),
        ([{"new": 1.0}], 3, LabelError),
        ([{"new": 1.0}], ["B" * 1001], LabelError),
    ]
    for tokens, labels, error in bad:
        with pytest.raises(error):
            model.learn_one(tokens, labels)
        with pytest.raises(error):
            model.learn_many([X[11], tokens], [Y[11], labels])
    for w in (-1.0, float("nan"), [1.0, 1.0], "heavy"):
        with pytest.raises(ParameterError):
            model.learn_many([X[11]], [Y[11]], w)
    with pytest.raises(LabelError, match="labels for 1 sentences"):
        model.learn_many(X[:2], Y[:1])
    assert same(model, other) and model.n_features == n_features
    assert model.classes == other.classes


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
    assert same(model, arrow)
    found = arrow.predict_many(pa.array(words))
    assert isinstance(found, pa.Array) and found.to_pylist() == model.predict_many(words)
    dense = cls(**params)
    dense.learn_one(np.eye(3), ["a", "b", "a"])
    named = cls(**params)
    named.learn_one([{"0": 1.0}, {"1": 1}, {"2": True}], ["a", "b", "a"])
    assert same(dense, named)


def test_labels_that_arrow_cannot_hold_together_are_named():
    model = SequencePerceptron()
    model.learn_many([["a", "b"]] * 5, [["A", 1]] * 5)
    assert model.predict_many([["a", "b"]]) == [["A", 1]]
    with pytest.raises(LabelError, match="X.to_pylist"):
        model.predict_many(pa.array([["a", "b"]]))


@every
def test_weight_zero_records_labels_only(cls, params):
    model = cls(**params)
    model.learn_one(["a", "b"], ["A", "B"], 0.0)
    assert model.classes == ["A", "B"] and not model.solver.model.weights.any()


@every
def test_the_limit_of_features(cls, params):
    model = cls(**params, max_features=2)
    model.learn_one([["a", "b", "c"], ["d"]], ["A", "B"])
    assert model.n_features == 2 and model.counters["features_ignored"] == 2
    model.predict_one([["c", "zzz"]])
    assert model.n_features == 2


@every
def test_the_limit_of_labels(cls, params):
    model = cls(**params, max_classes=3)
    model.learn_one(["a", "b"], ["A", "B"])
    with pytest.raises(LabelError, match="max_classes"):
        model.learn_many([["a"], ["b"]], [["C"], ["D"]])
    assert model.classes == ["A", "B"]
    model.learn_one(["c"], ["C"])
    model.learn_one(["a"], ["A"])
    assert model.classes == ["A", "B", "C"]


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"inference": "beam"}, "use 'greedy' or 'exact'"),
        ({"order": 33}, "at most 32"),
        ({"order": -1}, "at least 0"),
        ({"order": 1.5}, "whole number"),
        ({"inference": "exact", "order": 2}, "at most 1"),
        ({"class_weight": "balanced"}, "use None or a dict"),
        ({"class_weight": {"B": -1.0}}, "class_weight"),
        ({"max_features": 0}, "max_features=0"),
        ({"max_classes": 1}, "max_classes=1"),
        ({"max_features": None}, "max_features=None"),
    ],
)
def test_parameters_are_checked(cls, params, said):
    with pytest.raises(ParameterError, match=said):
        cls(**params)


@pytest.mark.parametrize(
    "params",
    [
        {"C": 0.0},
        {"C": "1"},
        {"reprocess": -1},
        {"optimize": None},
        {"window": 0},
        {"max_support_patterns": 1},
    ],
)
def test_parameters_of_larank_are_checked(params):
    with pytest.raises(ParameterError):
        LaRankSequenceLabeler(**params)


def test_a_pipeline_of_chain_and_learner(tmp_path):
    words = [[t["w"] for t in s] for s in X]
    model = Chain(window=1, affixes=1) | LaRankSequenceLabeler(seed=1)
    model.learn_many(words, Y)
    events = Chain(window=1, affixes=1) | LaRankSequenceLabeler(seed=1)
    for tokens, labels in zip(words, Y, strict=True):
        events.learn_one(tokens, labels)
    assert same(model["LaRankSequenceLabeler"], events["LaRankSequenceLabeler"])
    streamsvm.save(model, tmp_path / "p.svm")
    loaded = streamsvm.load(tmp_path / "p.svm")
    assert loaded.predict_one(words[0]) == model.predict_one(words[0])
    assert loaded.predict_many(words) == events.predict_many(words)


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


def test_a_class_weight_favours_its_label():
    plain = LaRankSequenceLabeler(order=0, C=0.01, seed=1)
    heavy = LaRankSequenceLabeler(order=0, C=0.01, class_weight={"I": 30.0}, seed=1)
    counts = []
    for model in (plain, heavy):
        model.learn_many(X, Y)
        counts.append(flat(model.predict_many(FRESH)).count("I"))
    assert counts[1] > counts[0]


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
        assert same(one, model)


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
    assert np.abs(model.solver.model.weights).max() < 1e-4
    model.learn_many(X, Y)
