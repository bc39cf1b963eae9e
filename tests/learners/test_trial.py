"""Scale and width of kernel learners by trial on the first examples."""

import pickle
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse as scipy_sparse
from scipy.spatial.distance import cdist

import streamsvm
from streamsvm import (
    AdaptiveSVMClassifier,
    LaRankClassifier,
    LASVMClassifier,
    StandardScaler,
    kernels,
    predict_then_learn_many,
)
from streamsvm.cli.main import main
from streamsvm.features.matrices import Matrix
from streamsvm.learners.bases.late_rows import LateRows
from streamsvm.models.kept_examples import Examples
from streamsvm.models.kernel import race, relearning, relevance
from streamsvm.models.rows import scaled_rows
from tests.learners.test_all_learners import by_events, content, saved
from tests.learners.test_lasvm import optimum
from tests.reference.slow_relevance import slow_relevance

LEARNERS = pytest.mark.parametrize("cls", [LASVMClassifier, LaRankClassifier])


def stream(n, seed=0, noise_scale=1.0):
    """Return rows of five features and labels: two matter, a circle; the fifth is 0 or 1."""
    draws = np.random.default_rng(seed)
    x = draws.normal(size=(n, 5))
    y = x[:, 0] ** 2 + x[:, 1] ** 2 < 1.4
    x[:, 2:4] *= noise_scale
    x[:, 4] = draws.random(n) < 0.3
    return x.astype(np.float32), y


def learnt(model, x, y, parts=(700, 1300)):
    for part in np.split(np.arange(len(x)), parts):
        if len(part):
            model.learn_many(x[part], y[part].tolist())
    return model


@LEARNERS
@pytest.mark.parametrize("n_classes", [2, 4])
def test_candidates_that_err_far_more_do_not_learn_all_and_change_no_choice(
    cls, n_classes, monkeypatch
):
    x, y = stream(1100, noise_scale=100.0)
    y = y * (n_classes // 2) + (x[:, 2] > 0) * (n_classes > 2)
    learn, counts, models = race.Race._learn, [], []

    def counted(self, tried, examples, stop):
        if stop <= self.begun.n_kept:
            counts[-1] += stop - tried.model.n_examples
        return learn(self, tried, examples, stop)

    monkeypatch.setattr(race.Race, "_learn", counted)
    for far, far_of_further in (race._FAR, race._FAR_OF_FURTHER), (np.inf, np.inf):
        monkeypatch.setattr(race, "_FAR", far)
        monkeypatch.setattr(race, "_FAR_OF_FURTHER", far_of_further)
        counts.append(0)
        models.append(learnt(cls(seed=1, scale=True), x, y).chosen)
    assert models[0] == models[1]
    # Of several classes C 10 is tried with two widths.
    n_candidates = 4 if n_classes == 2 else 5
    assert counts[1] == n_candidates * (2048 - 4) and counts[0] < 0.95 * counts[1]


@LEARNERS
def test_the_scale_that_errs_least_is_chosen(cls):
    far, y = stream(1500, noise_scale=1e4)
    model = learnt(cls(seed=1), far, y)
    rule = learnt(cls(seed=1, scale=False, gamma="scale"), far, y)
    near = far * np.float32([1, 1, 1e-4, 1e-4, 1])
    assert model.chosen.startswith("scaled rows, 2 features that matter, gamma ")
    assert ": best of 11 on the first 1,024" in model.chosen and rule.chosen is None
    test, labels = stream(500, seed=1, noise_scale=1e4)
    right = np.mean(np.array(model.predict_many(test)) == labels)
    assert right > 0.85 > 0.7 > np.mean(np.array(rule.predict_many(test)) == labels)
    # What matters more because it is larger is left so: raw rows are as good as learnt weights.
    near[:, :2] *= 5.0
    chosen = learnt(cls(seed=1), near, y).chosen
    assert chosen.startswith(("raw rows, gamma ", "scaled rows, 2 features that matter"))


def few(n, d=40, seed=0):
    """Return rows of d features and labels: the sign of a product of two, and a third."""
    x = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return x, x[:, 3] * x[:, 7] + x[:, 9] > 0.0


@LEARNERS
def test_the_few_features_that_matter_are_found(cls, tmp_path, monkeypatch):
    monkeypatch.setattr(race, "BUDGET", 2e5)
    x, y = few(1800)
    model = learnt(cls(seed=1), x[:1100], y[:1100])
    # In the middle of the race.
    assert model.preparation.trial.begun is not None
    model.save(tmp_path / "m.svm")
    models = [model, streamsvm.load(tmp_path / "m.svm")]
    for other in models:
        by_events(other, x[1100:], y[1100:])
        other.finish()
    assert content(models[1]) == content(model)
    assert ", 3 features that matter, gamma" in model.chosen
    test, labels = few(1000, seed=1)
    assert np.mean(np.array(model.predict_many(test)) == labels) > 0.88
    # They still count little when all are scaled otherwise, and in files.
    model.save(tmp_path / "m.svm")
    scales = streamsvm.load(tmp_path / "m.svm").preparation.scales
    assert np.flatnonzero(scales.relevance > 0.3).tolist() == [3, 7, 9]
    assert scales.factors()[3] > 4.0 * scales.factors()[4]
    assert "matter" not in learnt(cls(seed=1, scale=False), x[:1100], y[:1100]).chosen


@LEARNERS
def test_features_that_only_all_examples_show_are_found(cls):
    x, _ = few(1100, seed=1)
    y = x[:, 3] * x[:, 7] + x[:, 9] + 0.3 * x[:, 11] > 0.0
    for n, expected in (512, [3, 7, 9]), (1024, [3, 7, 9, 11]):
        rows = relevance.standardised(x[:n])
        found = relevance.are_relevant(rows, y[:n].astype(int), 1, 41)
        assert np.flatnonzero(found).tolist() == expected
    model = learnt(cls(seed=1), x, y)
    assert np.flatnonzero(model.preparation.scales.relevance > 0.3).tolist()[:3] == [3, 7, 9]


@pytest.mark.parametrize("n_classes", [2, 5])
def test_relevance_is_that_of_the_formula_and_not_of_chance(n_classes):
    x, y = few(512, d=100)
    x[:, 50] = 1.0
    noise = np.random.default_rng(1).integers(0, n_classes, len(x))
    rows = relevance.standardised(x)
    for classes in (noise, noise * 2 + y, np.where(noise < 1, noise, 10 * y)):
        found = relevance.are_relevant(rows, classes, 1, 101)
        assert np.array_equal(found, slow_relevance(rows.astype(float), classes))
    assert not slow_relevance(rows, noise).any()
    assert np.flatnonzero(relevance.are_relevant(rows, y, 1, 101)).tolist() == [3, 7, 9]


def line(n, n_classes, seed=0):
    """Return rows of five features and labels that depend on a sum of them all."""
    x = np.random.default_rng(seed).normal(size=(n, 5)).astype(np.float32)
    return x, np.digitize(x.sum(axis=1), np.linspace(-2.0, 2.0, n_classes + 1)[1:-1])


@LEARNERS
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_larger_c_is_tried_unless_it_is_given(cls, n_classes, tmp_path):
    x, y = line(1100, n_classes)
    model = learnt(cls(seed=1), x, y)
    # Of several classes with two widths.
    words = f", C 10: best of {4 if n_classes == 2 else 5} on the first 1,024"
    assert model.C_ == 10.0 and words in model.chosen
    assert ", C=10 (raw rows" in model.description
    given = learnt(cls(C=1.0, seed=1), x, y)
    assert given.C_ == 1.0 and re.search(r"gamma [\d.]+: best of 3 on", given.chosen)
    loaded = saved(model, tmp_path / "m.svm")
    assert (loaded.C, loaded.C_) == ("auto", 10.0)
    # As the learner that was told what has been found.
    kernel = kernels.RBF(gamma=model.kernel_.gamma)
    told = learnt(cls(kernel, C=10.0, seed=1), x[:1024], y[:1024])
    # The trial learns in one batch with one gamma; so does this.
    test, labels = line(500, n_classes, seed=1)
    found = [np.mean(np.array(m.predict_many(test)) == labels) for m in (model, told, given)]
    assert found[0] >= found[1] - 0.02 and found[0] > found[2]
    # No box is larger than the C in use, nor are coefficients.
    assert 1.0 < np.abs(model.support_vectors().coefficients).max() <= 10.0 + 1e-6


def test_only_what_is_not_given_is_tried():
    x, y = stream(1100, seed=4, noise_scale=100.0)
    assert "best of 4 on the first 1,024" in learnt(LASVMClassifier(scale=False), x, y).chosen
    both = learnt(LASVMClassifier(gamma="scale"), x, y)
    # The gamma of the rule goes with the C of the rule.
    assert re.match("scaled rows, 2 features .* C 1: best of 4", both.chosen)
    scaled = learnt(LASVMClassifier(scale=True, gamma="scale"), x, y)
    # Four features of variance 1, and one that is 0 or 1 with variance .21.
    assert scaled.kernel_.gamma == pytest.approx(1 / 4.21, rel=0.02)
    assert "best of 1 on" in scaled.chosen
    rule = learnt(LASVMClassifier(scale=False, gamma="scale"), x, y)
    assert rule.preparation.trial is None and rule.preparation.choice is None
    total = x[:1024].var(axis=0, dtype=np.float64).sum()
    assert rule.kernel_.gamma == pytest.approx(1 / total, rel=0.05)
    for cls in (LASVMClassifier, LaRankClassifier):
        given = cls(kernel=kernels.RBF(gamma=1.0))
        assert given.preparation.trial is None and given.C_ == 1.0


def test_behind_a_scaler_gamma_is_tried_and_whether_some_features_matter():
    x, y = stream(1100, noise_scale=100.0)
    model = StandardScaler() | LASVMClassifier()
    predicted = predict_then_learn_many(model, x, y.tolist())
    chosen = model["LASVMClassifier"].chosen
    assert re.match("scaled rows, 2 features .* best of 8 on the first 1,024", chosen)
    assert np.mean(np.array(predicted) == y) > 0.8


@pytest.mark.parametrize(
    ("names", "order"), [("abcdef", [5, 4, 0]), ("abc", [2, 1]), ("ab", [1, 0]), ("ab", [1])]
)
def test_classes_that_the_first_examples_lack_keep_their_numbers(names, order):
    learner = AdaptiveSVMClassifier(seed=1)
    for label in names:
        learner.add_class(label)
    learner.schema.extend([0, 1])
    classes = np.array(order)[np.arange(64) // 4 % len(order)]
    draws = np.random.default_rng(0)
    rows = (draws.normal(size=(64, 2)) + 9.0 * classes[:, None]).astype(np.float32)
    model = learner.model.new_first(learner.model.factors_of_classes)
    examples = Examples(rows, classes, np.ones(64), np.zeros(64, np.uint8))
    relearning.learn_examples(model, examples)
    # Before anything else may make room: the next call may be a compiled one, for any class.
    if len(names) > 2:
        assert model.state.info[0].n_classes == len(names)
    scores = model.outputs.scores_of(model.margins_of(rows))
    assert not model.outputs.are_wrong(classes, scores).any()


def test_sparse_rows_are_not_scaled():
    draws = np.random.default_rng(0)
    x = scipy_sparse.random(1100, 400, 0.02, format="csr", random_state=0, dtype=np.float32)
    y = np.asarray(x[:, :200].sum(axis=1)).ravel() > np.asarray(x[:, 200:].sum(axis=1)).ravel()
    model = LASVMClassifier()
    model.learn_many(x, y.tolist())
    # The labels have a nearly linear margin: a wide kernel with a large C.
    assert model.preparation.factors is None and "C 10: best of 4 on" in model.chosen
    # Dense rows of mostly zeros become sparse while they are on trial.
    dense = np.zeros((1100, 600), np.float32)
    dense[np.arange(1100), draws.integers(0, 600, 1100)] = 5.0 * draws.normal(size=1100)
    later = learnt(LASVMClassifier(), dense, dense.sum(axis=1) > 0)
    assert later.is_sparse and later.preparation.factors is None


def test_further_epochs_of_the_same_rows_are_not_counted():
    x, y = stream(300)
    noise = np.random.default_rng(1).random(300) < 0.25
    once, epochs = LASVMClassifier(), LASVMClassifier()
    ids = np.arange(1, 301)
    once.learn_many(x, (y ^ noise).tolist(), ids=ids)
    for _ in range(4):
        epochs.learn_many(x, (y ^ noise).tolist(), ids=ids)
    # Narrow kernels know all rows of earlier epochs by heart.
    assert epochs.kernel_.gamma < 8.0 / x.var(axis=0).sum()


def test_the_command_scales_by_trial_instead_of_a_scaler(tmp_path, capsys):
    x, y = stream(1100, seed=4, noise_scale=100.0)
    table = pa.table({**{f"x{c}": column for c, column in enumerate(x.T)}, "label": y})
    pq.write_table(table, tmp_path / "data.parquet")

    def chosen(*options):
        given = ["replay", str(tmp_path / "data.parquet"), "--target", "label"]
        assert main([*given, "--learner", "lasvm", *options]) == 0
        return re.search(r"scale, gamma, C +(.*)", capsys.readouterr().out).group(1)

    assert re.match(r"scaled rows, 2 features .*: best of \d+ on the first 1,024", chosen())
    assert re.match(r"scaled rows, 2 features [^C]*: best of \d+ on", chosen("--C", "2"))
    for scaler in (["--scale"], ["--clip", "8"]):
        assert re.match("raw rows, gamma .* best of 4 on the first 1,024", chosen(*scaler))
    assert "raw rows" in chosen("--no-scale")


def held(model):
    """Return the rows of the reserve, scaled as the model's, and the numbers of their examples."""
    x, facts = model.solver.kept_rows.rows()
    return x, facts["number"]


@pytest.mark.parametrize("n", [60, 1100])
@pytest.mark.parametrize("parameters", [{"reserve": 300}, {"window": 150}, {"reserve": 0}])
def test_the_reserve_holds_rows_in_the_scale_of_the_model(n, parameters, tmp_path):
    x, y = stream(n, noise_scale=100.0)
    model = learnt(LASVMClassifier(scale=True, C=10.0, **parameters), x, y, parts=(7, 40))
    rows, numbers = held(model)
    assert len(numbers) == len(set(numbers))
    assert (len(numbers) > 20) == (parameters != {"reserve": 0})
    if len(numbers):
        np.testing.assert_array_equal(rows, scaled_rows(x[numbers - 1], model.preparation.factors))
    one = LASVMClassifier(scale=True, C=10.0, **parameters)
    by_events(one, x, y)
    model.save(tmp_path / "m.svm")
    copies = [one, streamsvm.load(tmp_path / "m.svm"), pickle.loads(pickle.dumps(model))]
    assert all(content(other) == content(model) for other in copies)
    for other in (model, *copies):
        other.finish()
    assert all(content(other) == content(model) for other in copies)


def test_with_all_rows_in_reserve_a_scaled_model_reaches_the_optimum_of_the_scaled_rows():
    x, y = stream(1100, noise_scale=100.0)
    y ^= np.random.default_rng(1).random(len(y)) < 0.1
    model = learnt(LASVMClassifier(scale=True, C=10.0, reserve=1100), x, y)
    before = model.dual
    model.finish()
    scaled = scaled_rows(x, model.preparation.factors)
    gram = np.exp(-model.kernel_.gamma * cdist(scaled, scaled, "sqeuclidean"))
    assert model.dual == pytest.approx(optimum(scaled, y, gram, 10.0), rel=1e-3)
    assert model.dual > 1.001 * before
    margins = model.decision_function_many(x) - model.bias
    found = model.support_vectors()
    np.testing.assert_allclose(gram[:, found.entered - 1] @ found.coefficients, margins, atol=1e-2)
    classes = np.array([model.targets.number_of(label) for label in y.tolist()])
    violations = model.solver.violations(classes, model.targets.direction * margins)
    others = ~np.isin(np.arange(1, 1101), model.kept_numbers())
    assert violations[others].max() < 0.05


@LEARNERS
@pytest.mark.parametrize("n", [50, 1100])
def test_rows_that_are_only_predicted_are_no_examples_of_a_trial(cls, n):
    x, y = stream(n, noise_scale=100.0)
    model, alone = cls(seed=1, window=200), cls(seed=1, window=200)
    for other in (model, alone):
        other.learn_many(x[:10], y[:10].tolist())
    for start in range(10, n, 20):
        part, labels = x[start : start + 20], y[start : start + 20].tolist()
        alone.learn_many(part, labels)
        # Each event is predicted, and learnt after all of them.
        events = np.tile(np.arange(len(part)), 2)
        late = LateRows(np.arange(len(events)) >= len(part), events, np.empty(len(part), object))
        twice = Matrix(list(range(5)), part[events].astype(np.float64), None)
        model.learn_batch(twice, [None] * len(part) + labels, late=late)
    # Only to predict takes kernel values, too.
    found, expected = content(model), content(alone)
    assert found[0]["info"].pop("n_values") >= expected[0]["info"].pop("n_values")
    assert found == expected


@LEARNERS
@pytest.mark.parametrize("unit", [1e-12, 1e-7, 1e6])
def test_any_unit_of_all_features_is_learnt_alike(cls, unit):
    x, y = stream(1500)
    wrong = [
        np.array(cls(seed=1).predict_then_learn_many(rows, y.tolist())) != y
        for rows in (x[:, :4], (x[:, :4].astype(float) * unit).astype(np.float32))
    ]
    assert wrong[1].mean() < wrong[0].mean() + 0.02
