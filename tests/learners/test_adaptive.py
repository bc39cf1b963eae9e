"""AdaptiveSVMClassifier: the choice among models, drift, classes, copies and files."""

import contextlib
import copy
import inspect
import itertools
import logging

import numpy as np
import pytest
from river import naive_bayes
from scipy import sparse as scipy_sparse

from streamsvm import AdaptiveSVMClassifier, LaRankClassifier, LASVMClassifier
from streamsvm.errors import FeatureError, LabelError, ParameterError
from streamsvm.models.contest import adaptive_model, errors, members, renewal
from streamsvm.models.kernel import relearning
from streamsvm.models.kernel.larank_solver import LaRankSolver
from streamsvm.models.kernel.lasvm_solver import LASVMSolver
from streamsvm.models.rank_bits import fitted, ranks_of
from streamsvm.solvers.adaptive import combination, last_label
from streamsvm.support.rows import sparse
from tests.learners.test_all_learners import by_events, content, saved
from tests.learners.test_parts import interrupt
from tests.reference.slow_adaptive import slow_bits, slow_combination, slow_drifts
from tests.slow import slow_but


def stream(n, turn=10**9, n_classes=2, seed=0, noise=0.05):
    """Return rows and labels; after `turn` rows the labels change."""
    draws = np.random.default_rng(seed)
    x = draws.uniform(-1.0, 1.0, (n, 2)).astype(np.float32)
    y = ((x**2).sum(axis=1) < 0.6).astype(int)
    if n_classes > 2:
        y += 2 * (x[:, 0] > 0.3)
    y = np.where(np.arange(n) < turn, y, (y + 1) % n_classes)
    chance = draws.random(n) < noise
    return x, np.where(chance, draws.integers(0, n_classes, n), y)


def learnt(model, x, y, parts=()):
    for part, labels in zip(np.split(x, parts), np.split(y, parts), strict=True):
        model.learn_many(part, labels.tolist())
    return model


def check_one_model(x, y, cuts, folder, **parameters):
    """Check that events make the model that batches make, saved and copied between them.

    Return the model of the events, and what it predicted.
    """
    one, many = (AdaptiveSVMClassifier(**{"seed": 1} | parameters) for _ in range(2))
    predicted, found = by_events(one, x, y), []
    for part, labels in zip(np.split(x, cuts), np.split(y, cuts), strict=True):
        if found:
            many = copy.deepcopy(saved(many, folder / "m.svm"))
        found += many.predict_then_learn_many(part, labels.tolist())
    assert found == predicted
    assert content(one) == content(many)
    return one, predicted


def words(n, n_new, seed=1):
    """Return events of words, and labels that repeat; `n_new` of the words come only once."""
    draws = np.random.default_rng(seed)
    y = np.repeat(draws.integers(0, 2, n // 25), 25)
    events = []
    for i in range(n):
        event = {f"w{k}": 1.0 for k in draws.integers(0, 200, 6)} | {
            f"id{i}-{k}": 1.0 for k in range(n_new)
        }
        events.append(event)
    return events, y.tolist()


@pytest.mark.parametrize("shares", [(0.1, 0.1), (0.02, 0.5), (0.1, 0.3, 0.1, 0.4), (0.3, 0.9)])
@pytest.mark.parametrize("length", [400, 1500])
def test_drifts_are_noticed_as_by_the_twin(shares, length):
    wrong = np.random.default_rng(0).random(len(shares) * length) < np.repeat(shares, length)
    state, found = AdaptiveSVMClassifier().model.state, []
    for n in range(32, len(wrong) + 1, 32):
        errors.note(state, wrong[n - 32 : n].astype(np.uint8) << errors.PREDICTIONS, [True] * 3)
        if errors.notices_drift(state, n):
            found.append(n)
    slow, fast = (errors.FADE, errors.ALARM), (errors.FADE_OF_LATEST, errors.ALARM_OF_LATEST)
    expected = slow_drifts(wrong, slow, fast, errors.LIMIT, errors.APART, 32)
    assert found == expected and bool(found) == (max(shares) > 0.1)
    assert state.info[errors.N_DRIFTS] == len(found)


@pytest.mark.parametrize("seed", slow_but(range(6), 0))
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_drift_is_noticed_whether_models_adapt_or_begin_anew(n_classes, seed):
    x, y = stream(3200, turn=2000, n_classes=n_classes, seed=seed)
    model = learnt(AdaptiveSVMClassifier(seed=1), x, y)
    assert model.n_drifts == 1 and 2000 < model.last_drift <= 2100


def test_a_drift_is_noticed_and_said(caplog):
    x, y = stream(4000, turn=2000)
    model = AdaptiveSVMClassifier()
    with caplog.at_level(logging.INFO, "streamsvm.models.contest"):
        right = np.array(model.predict_then_learn_many(x, y.tolist())) == y
    assert model.n_drifts == 1 and 2000 < model.last_drift <= 2400
    assert f"drift at example {model.last_drift}: " in caplog.text
    summary = " ".join(model.summary().split())
    assert f"drifts 1, the last at example {model.last_drift:,}" in summary
    assert summary.count("drifts") == 1
    alone = np.array(LASVMClassifier().predict_then_learn_many(x, y.tolist())) == y
    assert right[2400:].mean() > alone[2400:].mean()
    # They have forgotten what was before, but for a part of the last examples.
    begun = model.model.state.begun
    assert begun[members.FIRST] > 1000 and model.in_use.n_examples == 4000 - begun[0]
    assert begun[members.RANKS] > 1000 or model.model.members[members.RANKS] is None


@pytest.mark.parametrize("seed", [0, 1])
def test_a_rare_class_is_known_after_models_began_anew(seed):
    n, draws = 2500, np.random.default_rng(seed)
    x = draws.normal(size=(2 * n, 4))
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    y[n:] = 1 - y[n:]
    rare, corner = np.arange(n // 12, n // 2, n // 12), [4.0, 4.0, 0.0, 0.0]
    x[rare], y[rare] = corner, 2
    model = learnt(AdaptiveSVMClassifier(seed=1), x, y)
    state = model.model.state
    assert state.restarted[members.FIRST] > n > rare[-1]
    assert model.predict_many(np.array([corner])) == [2]


@pytest.mark.parametrize("window", [50, 200, 500, 10_000])
@pytest.mark.parametrize("n_classes", [2, 3, 120])
def test_what_a_fresh_model_learns(window, n_classes):
    model, draws = AdaptiveSVMClassifier(window=window), np.random.default_rng(0)
    n, shares = 3000, np.ones(n_classes)
    shares[0] = 0.002 * n_classes
    y = draws.choice(n_classes, n, p=shares / shares.sum())
    learnt(model, draws.normal(size=(n, 2)), y)
    inner = model.model
    classes = inner.recent.facts()["y"]
    for length in (256, 1024):
        examples, n_rare = inner._last_and_rare(length)
        older = classes[-max(length, inner._most_kept()) : -length]
        assert examples.classes[n_rare:].tolist() == classes[-length:].tolist()
        assert len(examples.x) == n_rare + length
        counts = np.bincount(examples.classes[:n_rare], minlength=n_classes)
        most = max(1, 50 // n_classes)
        assert (counts <= np.minimum(most, np.bincount(older, minlength=n_classes))).all()
        if n_classes == 3 and window == 10_000:
            assert n_rare == counts[np.bincount(classes).argmin()] > 0


@pytest.mark.parametrize(("window", "n_classes"), [(50, 2), (256, 2), (500, 3)])
def test_a_drift_with_a_short_window(window, n_classes):
    x, y = stream(4000, turn=2000, n_classes=n_classes)
    model = learnt(AdaptiveSVMClassifier(window=window, seed=1), x, y, parts=[1000, 2100])
    assert model.n_examples == 4000 and model.model.state.restarted.any()


def test_its_models_learn_as_the_learners_do_by_default():
    assert members.LASVM == LASVMClassifier().solver.schedule
    assert members.LARANK == LaRankClassifier().solver.schedule
    share = inspect.signature(LaRankClassifier.finish).parameters["share"]
    assert share.default == adaptive_model.SHARE


UNITS = [(0.01, 0.01), (1000.0, 1000.0), (0.01, 1.0)]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("units", slow_but(UNITS, UNITS[2]))
def test_features_that_get_other_units_are_learnt_anew(n_classes, units):
    x, y = stream(3500, n_classes=n_classes, noise=0.0)
    x[2000:] *= np.float32(units)
    model = AdaptiveSVMClassifier(seed=1)
    wrong = np.array(model.predict_then_learn_many(x, y.tolist())) != y
    assert wrong[2000:2300].mean() > 0.2
    assert wrong[3000:].mean() < wrong[1500:2000].mean() + 0.05
    assert model.n_drifts == 1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_without_drift_nothing_is_forgotten(n_classes):
    x, y = stream(3000, n_classes=n_classes, noise=0.2)
    model = learnt(AdaptiveSVMClassifier(seed=1), x, y)
    assert model.n_drifts == 0 and model.drifts == "none noticed"
    assert model.in_use.n_examples == 3000 and not model.model.state.begun.any()


@pytest.mark.parametrize("late", [10, 40, 1200])
def test_a_third_class_that_comes_late(late, tmp_path):
    x, y = stream(1500, n_classes=4)
    labels = np.array(["a", "b", "c", "d"])[y]
    labels[:late] = np.where(y[:late] % 2 == 0, "b", "a")
    # The first row of a third class, too, is predicted by the models of two classes.
    model, _ = check_one_model(x, labels, (777,), tmp_path)
    assert set(model.classes) == {"a", "b", "c", "d"}
    assert {member.n_classes for member in model.models} == {4}
    assert np.mean(np.array(model.predict_many(x[-200:])) == labels[-200:]) > 0.8
    # Each of them counts once.
    assert 0 < model.n_support_vectors == model.in_use.solver.n_vectors <= 1500


def test_sparse_rows():
    x = scipy_sparse.random(400, 300, 0.03, format="csr", random_state=0, dtype=np.float32)
    y = np.asarray(x[:, :150].sum(axis=1)).ravel() > np.asarray(x[:, 150:].sum(axis=1)).ravel()
    model = AdaptiveSVMClassifier()
    model.learn_many(x, y.tolist())
    assert model.is_sparse and all(member.is_sparse for member in model.models)
    assert np.mean(np.array(model.predict_many(x)) == y) > 0.9
    hashed = AdaptiveSVMClassifier(hashing=64)
    for row, label in zip(x.toarray()[:100].tolist(), y.tolist(), strict=False):
        hashed.learn_one({f"n{i}": v for i, v in enumerate(row) if v}, label)
    assert hashed.predict_one({"n1": 1.0}) in (True, False)


@pytest.mark.parametrize(("n_classes", "d", "n_nonzero"), [(2, 50, 0), (5, 50, 0), (2, 3000, 20)])
def test_memory_stays_below_what_the_documentation_says(n_classes, d, n_nonzero):
    draws, n, window = np.random.default_rng(0), 2400, 300
    if n_nonzero:
        start, columns = np.arange(0, n * n_nonzero + 1, n_nonzero), draws.integers(0, d, (n, 20))
        x = scipy_sparse.csr_matrix((np.ones(n * n_nonzero), columns.ravel(), start), (n, d))
        of_row, of_names = 16 * n_nonzero, 3000 * d
    else:
        x, of_row, of_names = draws.normal(size=(n, d)).astype(np.float32), 8 * d, 0
    y = draws.integers(0, n_classes, n).tolist()
    model = AdaptiveSVMClassifier(window=window, cache_mb=2.0, seed=1, sparse=bool(n_nonzero))
    of_example = of_row + 900 + (120 * n_classes if n_classes > 2 else 0)
    bound = 2e6 + (4 * window + 1000) * of_example + of_names
    most = 0
    for i in range(0, n, 300):
        model.learn_many(x[i : i + 300], y[i : i + 300])
        most = max(most, model.memory_usage)
    assert model.memory_usage < bound
    # While scale and width are tried there are two models more.
    assert most < bound + 2 * (2e6 / 4 + 1024 * of_example)


@pytest.mark.parametrize(
    "n_classes", slow_but([2, 4], 2, compiling="LASVM of several classes dense")
)
def test_support_vectors_are_bounded(n_classes, tmp_path):
    x, y = stream(1700, turn=1300, n_classes=n_classes, noise=0.3)
    model, _ = check_one_model(x, y, (5, 700, 1200), tmp_path, max_support_vectors=40)
    assert model.max_support_vectors == 40
    assert {member.solver.schedule.bounds.limit for member in model.models} == {40}
    assert max(m.kept_numbers().size for m in model.models if m.n_examples) == 40
    unbounded = learnt(AdaptiveSVMClassifier(seed=1), x, y)
    assert model.memory_usage < 0.5 * unbounded.memory_usage


def test_finish_knows_words_that_came_since_the_last_look():
    """The last examples have more features than a model that was not told of them."""
    draws, model = np.random.default_rng(0), AdaptiveSVMClassifier(seed=42)
    for _ in range(200):
        y = int(draws.integers(3))
        words = [f"w{j}" for j in draws.integers(4000, size=5)]
        model.learn_one(dict.fromkeys(words, 1.0) | ({"in": 1.0} if y else {}), y)
    own = [member.model for member in model.model.members if member is not None]
    assert model.model.is_sparse and {one.n_features for one in own} != {model.model.n_features}
    duals = [member.dual for member in model.models]
    model.finish()
    assert all(one.n_features == model.model.n_features for one in own)
    assert all(member.delta <= 1e-3 for member in model.models) and model.duality_gap() < 0.01
    assert all(member.dual >= dual for member, dual in zip(model.models, duals, strict=True))


NO_COLUMNS = np.zeros(0, np.int64), np.zeros(0, np.int32)


def runs(n, n_classes=2, length=20.0, seed=0):
    draws = np.random.default_rng(seed)
    y = np.cumsum(draws.random(n) < 1.0 / length) % n_classes
    return (draws.normal(size=(n, 3)) + 0.3 * y[:, None]).astype(np.float32), y


@pytest.mark.parametrize("n_classes", [2, 3])
def test_where_labels_repeat_the_last_one_is_taken_into_account(n_classes, tmp_path):
    x, y = runs(1200, n_classes)
    labels = np.array(["b", "a", "c"])[y]
    one, predicted = check_one_model(x, labels, (777,), tmp_path)
    without = AdaptiveSVMClassifier(seed=1, last_label=False)
    assert np.mean(np.array(predicted[400:]) == labels[400:]) > 0.9
    # The fast linear model follows runs, too, but less.
    assert np.mean(np.array(by_events(without, x, labels)[400:]) == labels[400:]) < 0.87
    events = [dict(enumerate(row)) for row in x[:60].tolist()]
    assert one.predict_one(events[0]) == labels[-1]
    p, f = one.predict_proba_one(events[0]), one.decision_function_one(events[0])
    assert max(p, key=p.get) == one.predict_one(events[0]) == labels[-1]
    assert n_classes == 2 or max(f, key=f.get) == labels[-1]
    # Of several events only the first follows the label, and no row of a batch.
    rest = [one.predict_one(event) for event in events[1:]]
    assert rest == list(one.predict_many(x[1:60])) and len(set(rest)) > 1
    one.learn_one(events[0], labels[0])
    one.finish()
    assert len({one.predict_one(event) for event in events}) > 1


def test_labels_that_begin_to_come_late_are_noticed_alike_by_events_and_by_batches():
    x, y = runs(900)
    events = [dict(enumerate(row)) for row in x.tolist()]
    one, many = AdaptiveSVMClassifier(seed=1), AdaptiveSVMClassifier(seed=1)
    for i, event in enumerate(events):
        # From the 600th event on three labels are missing.
        at = i if i < 600 else i - 3
        assert one.predict_one(event) == many.predict_one(event)
        one.learn_one(events[at], int(y[at]))
        many.learn_many(x[at : at + 1], [int(y[at])])
    np.testing.assert_array_equal(one.model.combination.weights, many.model.combination.weights)


def test_a_class_that_cannot_be_added_to_one_model_is_added_to_none(monkeypatch):
    x, y = stream(700, n_classes=5)
    early = y < 4
    model, expected = AdaptiveSVMClassifier(seed=1), AdaptiveSVMClassifier(seed=1)
    for one in (model, expected):
        learnt(one, x[early], y[early])
    with monkeypatch.context() as patch:
        patch.setattr(model.models[-1].solver, "of_classes", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.learn_one({0: 1.0}, "typo")
    for one in (model, expected):
        learnt(one, x[~early], y[~early])
    assert {member.n_classes for member in model.models} == {len(model.classes)}
    assert model.predict_many(x).tolist() == expected.predict_many(x).tolist()


def test_labels_that_are_sorted_mislead_once():
    x, y = runs(1200)
    order = np.argsort(y, kind="stable")
    predicted = AdaptiveSVMClassifier().predict_then_learn_many(x[order], y[order].tolist())
    assert np.mean(np.array(predicted, object) == y[order]) > 0.95


def test_a_border_that_turns_is_followed():
    draws, n = np.random.default_rng(1), 3000
    x, angle = draws.normal(size=(n, 10)).astype(np.float32), np.arange(n) / 400
    y = np.cos(angle) * x[:, 0] + np.sin(angle) * x[:, 1] + 0.2 * draws.normal(size=n) > 0
    predicted = AdaptiveSVMClassifier(seed=1).predict_then_learn_many(x, y)
    # One model at a time reached .82.
    assert np.mean(np.array(predicted) == y) > 0.87


def test_class_weights_count_in_the_combination():
    # One of 60 is positive, and tells little of itself.
    draws, n = np.random.default_rng(2), 6000
    y = draws.random(n) < 1.0 / 60.0
    x = (draws.normal(size=(n, 4)) + 1.0 * y[:, None]).astype(np.float32)
    recall = []
    for weight in (1.0, 60.0):
        model = AdaptiveSVMClassifier(class_weight={True: weight}, seed=1)
        predicted = np.array(model.predict_then_learn_many(x, y.tolist()), object)
        recall.append(np.mean(predicted[1000:][y[1000:]].astype(bool)))
        one = AdaptiveSVMClassifier(class_weight={True: weight}, seed=1)
        assert by_events(one, x[:900], y[:900]) == predicted[:900].tolist()
    assert recall[0] < 0.2 < 0.6 < recall[1]


def test_the_model_of_the_latest_follows_the_first():
    x, y = stream(4500)
    scales = np.where(np.arange(4500) < 1200, 100.0, 1000.0)
    x[:, 1] *= scales.astype(np.float32)
    model = AdaptiveSVMClassifier(scale=True)
    learnt(model, x[:1100], y[:1100])
    before = model.in_use.preparation.factors.copy()
    for start in range(1100, 4500, 64):
        learnt(model, x[start : start + 64], y[start : start + 64])
        latest = model.model.members[members.LATEST]
        if latest is not None and model.n_examples % 64 == 0:
            first = model.in_use
            assert latest.model.kernel == first.kernel and latest.model.C == first.C
            np.testing.assert_array_equal(latest.model.factors, first.factors)
            assert latest.model.solver.n_vectors <= members.WINDOW_OF_LATEST
            # It follows fast: the last ones of rare classes leave, too.
            assert latest.model.solver.schedule.bounds.rare == 0.0
    assert model.in_use.preparation.factors[1] < 0.5 * before[1]


def test_models_that_add_nothing_sleep_and_wake_when_the_stream_has_doubled(tmp_path, monkeypatch):
    draws = np.random.default_rng(0)
    x = draws.normal(size=(4300, 3)).astype(np.float32)
    y = (x[:, 0] > x[:, 1]).astype(int)
    monkeypatch.setattr(adaptive_model, "MOST_KEPT", 1200)
    model, awake = AdaptiveSVMClassifier(seed=1), {}
    for n in range(0, 4300, 100):
        learnt(model, x[n : n + 100], y[n : n + 100])
        awake[n + 100] = [member is not None for member in model.model.members]
        if n == 3900:
            assert model.model.recent.n_examples == 1200 + 1024
    assert awake[1000] == [True] * 3 and awake[2000] != [True] * 3
    # The second changes at least: at 2,048, and again at 4,096.
    later = [one for n, one in awake.items() if n > 1100]
    assert sum(a != b for a, b in itertools.pairwise(later)) >= 3, awake
    # So it is where more examples came than are kept.
    assert content(check_one_model(x, y, (1000, 4000), tmp_path)[0]) == content(model)


def test_without_an_input_weights_are_those_that_are_best_without_it():
    draws = np.random.default_rng(0)
    state = combination.new_combination()
    a = draws.normal(size=(20, combination.N_INPUTS))
    state.curvature[:] = a.T @ a
    state.weights[:] = draws.normal(size=combination.N_INPUTS)
    before, h = state.weights.copy(), state.curvature + 3.0 * np.eye(combination.N_INPUTS)
    losses = combination.losses_without(state)
    combination.leave_out(state, 1)
    step = state.weights - before
    assert state.weights[1] == 0.0 and not state.curvature[1].any()
    # The least w' H w' / 2 over all steps by which the weight becomes 0.
    assert 0.5 * step @ h @ step == pytest.approx(losses[1])
    others = np.delete(np.arange(combination.N_INPUTS), 1)
    np.testing.assert_allclose((h @ step)[others], 0.0, atol=1e-9)


@pytest.mark.parametrize("d", [1, 3, 4, 40])
def test_bits_are_those_of_the_twin(d):
    draws = np.random.default_rng(d)
    x = np.round(draws.normal(size=(500, d)), 1).astype(np.float32)
    weights = None if d == 4 else draws.uniform(0.0001, 1.0, d) ** 4
    x[:, 2:3] = 7.0
    # A rare value, whether it is low or high, has bits.
    x[:, 4:5], x[:, 5:6] = 1.0, 0.0
    x[:25, 4:5], x[:25, 5:6] = 0.0, 1.0
    bits, gamma = fitted(x, weights)
    columns, edges = slow_bits(x, weights)
    np.testing.assert_array_equal(bits.columns, columns)
    np.testing.assert_allclose(bits.edges, edges, rtol=1e-6)
    np.testing.assert_array_equal(bits.of_rows(x), x[:, columns] > np.float32(edges))
    total = 6.0 if weights is None else np.delete(weights, 2 if d > 2 else []).sum()
    assert gamma * len(edges) == pytest.approx(total)
    ranks = ranks_of(x)
    np.testing.assert_allclose(ranks.mean(axis=0), 0.5, atol=1e-5)
    assert ranks.min() > 0.0 and ranks.max() < 1.0
    order = np.argsort(x[:, 0], kind="stable")
    assert np.all(np.diff(ranks[order, 0]) >= 0.0)


def test_borders_along_axes_are_learnt_by_ranks():
    # An exclusive or of three of eight features.
    draws, n = np.random.default_rng(0), 5000
    x = draws.uniform(-1.0, 1.0, (n, 8)).astype(np.float32)
    y = (x[:, :3] > 0.0).sum(axis=1) % 2 == 1
    model = AdaptiveSVMClassifier(seed=1)
    predicted = np.array(model.predict_then_learn_many(x, y.tolist()), object)
    # The first model alone reached .87.
    assert np.mean(predicted[3000:] == y[3000:]) > 0.93
    relevance = model.model.renewal.weights
    assert relevance[:3].min() > 5.0 * relevance[3:].max()
    # Heavy tails change nothing, as only ranks count.
    heavy = AdaptiveSVMClassifier(seed=1)
    predicted = np.array(heavy.predict_then_learn_many(np.sinh(6.0 * x), y.tolist()), object)
    assert np.mean(predicted[3000:] == y[3000:]) > 0.93


def test_the_model_of_ranks_is_renewed_in_parts(monkeypatch, tmp_path):
    """No look takes long: each lets the new model learn a part of what is kept."""
    monkeypatch.setattr(renewal, "BUDGET", 1.0)
    learn_examples, sizes = renewal.learn_examples, []

    def noted(model, examples):
        sizes.append(len(examples.classes))
        return learn_examples(model, examples)

    monkeypatch.setattr(renewal, "learn_examples", noted)
    x, y = stream(3300)
    x = np.column_stack([x, x[::-1, 0]])
    model = learnt(AdaptiveSVMClassifier(seed=1), x[:1100], y[:1100], parts=(500,))
    # Relevance is being learnt, a step after each look.
    assert model.model.renewal.began == 512
    check_one_model(x, y, (500, 1100, 1177, 2200, 2277), tmp_path)
    assert 128 in sizes and max(sizes) == 128


@pytest.mark.parametrize(("late", "is_sparse"), [(0, False), (40, False), (40, True)])
def test_labels_that_come_late_are_learnt_by_the_inputs_of_their_prediction(
    late, is_sparse, tmp_path
):
    # Whoever knows the last label is right; 40 events later it is of no use.
    x, y = runs(2500, length=30.0)
    events, inputs = [dict(enumerate(row)) for row in x.tolist()], []
    model = AdaptiveSVMClassifier(seed=1, **{"sparse": True} if is_sparse else {})
    n_right = np.zeros((2500, combination.N_INPUTS + 1), bool)
    for i, event in enumerate(events):
        predicted = model.predict_one(event)
        inputs.append(model.model.scratch.inputs[:, 0].copy())
        if i >= 500:
            n_right[i] = [*((inputs[-1] > 0.0) == (y[i] == model.classes[1])), predicted == y[i]]
        if i >= late:
            model.learn_one(events[i - late], int(y[i - late]))
    *alone, combined = n_right[500:].mean(axis=0)
    assert combined > max(alone) - 0.035
    state = model.model.combination
    waiting = state.digests[state.digests > 0]
    assert len(state.digests) == (256 if late else 64)
    assert len(waiting) == late and state.info[combination.IS_LATE] == (late > 0)
    for kept in state.waiting[state.digests > 0, : combination.N_INPUTS, 0]:
        assert any(np.array_equal(kept, one) for one in inputs[-late:])
    copy_of = saved(model, tmp_path / "m.svm")
    for event, label in zip(events[2500 - late :], y[2500 - late :].tolist(), strict=True):
        for one in (model, copy_of):
            one.learn_one(event, label)
    assert is_sparse or content(model) == content(copy_of)
    assert not (model.model.combination.digests > 0).any()
    assert model.decision_function_one(events[0]) == copy_of.decision_function_one(events[0])


def test_of_more_than_fifty_classes_the_models_are_laranks(monkeypatch, tmp_path):
    monkeypatch.setattr(members, "MOST_PAIRS", 4)
    monkeypatch.setattr(adaptive_model, "MOST_PAIRS", 4)
    x, y = stream(900, n_classes=6)
    y = np.where(np.arange(900) < 700, y % 4, y)
    before = learnt(AdaptiveSVMClassifier(seed=1), x[:700], y[:700])
    assert isinstance(before.in_use.solver, LASVMSolver)
    model, _ = check_one_model(x, y, (700,), tmp_path)
    assert len(model.classes) == 6
    assert {type(member.solver) for member in model.models} == {LaRankSolver}


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_are_combined_as_in_the_twin(n_classes, is_sparse):
    n, draws = 1500, np.random.default_rng(3)
    y = np.cumsum(draws.random(n) < 0.1) % n_classes
    y[1000:] = draws.integers(0, n_classes, n - 1000)
    scores = draws.normal(size=(n, 3, n_classes)) + np.eye(n_classes)[y][:, None]
    rows = (5.0 + draws.normal(size=(n, 4)) + np.eye(4)[y % 4]).astype(np.float32)
    rows[[100, 777], [0, 2]] = 1e6, -1e5
    if n_classes == 2:
        scores = scores[..., 1:] - scores[..., :1]
    # The third model came late, and slept.
    scores[:200, 2] = scores[900:1000, 2] = 0.0
    is_known = draws.random(n) < 0.95
    x = sparse(rows) if is_sparse else rows
    given = (x.values.reshape(1, -1), x.start, x.columns) if is_sparse else (rows, *NO_COLUMNS)
    k = scores.shape[2]
    state = combination.with_outputs(combination.new_combination(), k)
    state = combination.made_sparse(state) if is_sparse else state
    state, out = combination.with_room(state, 4, is_sparse), np.zeros((n, k))
    labels, scratch = np.where(is_known, y, combination.ONLY), combination.new_scratch(k, 9)
    scratch.factors_of_classes[:] = np.linspace(1.0, 2.5, n_classes)
    w = np.where(draws.random(n) < 0.1, 0.0, draws.uniform(0.5, 1.5, n))
    marks = np.zeros(n, np.int64)
    combination.learn_rows(state, scores, *given, labels, w, True, scratch, out, marks)
    w *= scratch.factors_of_classes[y]
    expected = slow_combination(scores, rows, y, is_known, True, is_sparse, w)
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-7)
    predicted = out[:, 0] > 0.0 if k == 1 else out.argmax(axis=1)
    alone = scores[:, 0, 0] > 0.0 if k == 1 else scores[:, 0].argmax(axis=1)
    of_late = slice(500, 900)
    assert np.mean(predicted[of_late] == y[of_late]) > 0.05 + np.mean(alone[of_late] == y[of_late])
    counts = is_known & (w > 0.0)
    np.testing.assert_array_equal((marks & 1)[counts], (alone != y)[counts])
    np.testing.assert_array_equal((marks >> 3)[counts], (predicted != y)[counts])
    assert (marks[is_known & (w == 0.0)] == combination.UNCOUNTED).all()


def test_rows_that_become_sparse_in_mid_stream():
    draws = np.random.default_rng(0)
    x = draws.normal(size=(900, 200)).astype(np.float32)
    x[12:] *= draws.random((888, 200)) < 0.03
    y = (x[:, :100].sum(axis=1) > x[:, 100:].sum(axis=1)).astype(int)
    one, many = AdaptiveSVMClassifier(seed=1), AdaptiveSVMClassifier(seed=1)
    found = many.predict_then_learn_many(x[:333], y[:333].tolist())
    found += many.predict_then_learn_many(x[333:], y[333:].tolist())
    assert by_events(one, x, y) == found
    assert one.is_sparse and all(member.is_sparse for member in one.models)
    states = one.model.combination, many.model.combination
    for name in ("weights", "curvature", "linear", "moments", "counts", "errors", "info"):
        np.testing.assert_array_equal(*(getattr(state, name) for state in states))


def test_what_interrupts_a_look_harms_nothing(monkeypatch, tmp_path):
    """Ctrl-C while a model begins anew, or bits are renewed: each goes on afterwards."""
    x, y = stream(3200, turn=2000)
    x = np.column_stack([x, x[::-1, 0]])
    moments = [
        (adaptive_model.AdaptiveModel, "_learn_first", 2000, 2600),
        (renewal, "_advanced", 500, 600),
        (renewal, "learn_examples", 600, 1300),
    ]
    for thing, name, start, stop in moments:
        model = AdaptiveSVMClassifier(seed=1)
        learnt(model, x[:start], y[:start])
        rows = x[start:stop], y[start:stop]
        interrupt(monkeypatch, thing, name, lambda m=model, r=rows: learnt(m, *r))
        n = model.n_examples
        assert start < n < stop
        first, begun = model.in_use, model.model.state.begun[members.FIRST]
        assert first.n_examples + begun == n and model.kept_numbers().max() <= n
        loaded = saved(model, tmp_path / "m.svm")
        for one in (model, loaded):
            learnt(one, x[n:], y[n:], parts=(100,))
        assert content(model) == content(loaded)
        assert model.model.renewal.weights is not None
        assert np.mean(np.array(model.predict_many(x[2800:])) == y[2800:]) > 0.9


def test_of_words_the_counts_are_combined_too():
    draws, n = np.random.default_rng(0), 1500
    y = draws.random(n) < 0.4
    # Each of 2,000 words says a little.
    tilt = draws.normal(size=2000)
    events = []
    for label in y:
        p = np.exp((0.5 if label else -0.5) * tilt)
        words = draws.choice(2000, 12, p=p / p.sum())
        events.append({f"w{word}": 1.0 for word in words})
    right = {}
    for cls in (AdaptiveSVMClassifier, LASVMClassifier):
        model, n_right = cls(sparse=True, seed=1), 0
        for i, (x, label) in enumerate(zip(events, y.tolist(), strict=True)):
            n_right += i >= 500 and model.predict_one(x) == label
            model.learn_one(x, label)
        right[cls] = n_right / 1000
    assert right[AdaptiveSVMClassifier] > right[LASVMClassifier] + 0.02, right


def test_classes_that_differ_in_variances_are_told_apart():
    draws = np.random.default_rng(5)
    y = draws.integers(0, 4, 1200)
    deviations = np.exp(0.6 * draws.normal(size=(4, 10)))
    right = {AdaptiveSVMClassifier: 0, naive_bayes.GaussianNB: 0}
    events = [
        dict(enumerate(row)) for row in (deviations[y] * draws.normal(size=(1200, 10))).tolist()
    ]
    for cls in right:
        model = cls()
        for i, (x, label) in enumerate(zip(events, y.tolist(), strict=True)):
            right[cls] += i >= 200 and model.predict_one(x) == label
            model.learn_one(x, label)
    assert right[AdaptiveSVMClassifier] > right[naive_bayes.GaussianNB] - 30, right


def test_what_fresh_models_take_is_bounded_by_the_examples(monkeypatch):
    # Each 700 examples the labels turn round: errors are always more than they were.
    draws = np.random.default_rng(3)
    x = draws.uniform(-1.0, 1.0, (7000, 2)).astype(np.float32)
    y = (((x**2).sum(axis=1) < 0.6) == (np.arange(7000) // 700 % 2 > 0)).tolist()
    taken = {}
    for at_first in (1e12, 2048.0):
        monkeypatch.setattr(adaptive_model, "_TRIED_AT_FIRST", at_first)
        model = learnt(AdaptiveSVMClassifier(), x, y)
        taken[at_first] = model.model.state.info[errors.TRIED]
    assert taken[2048.0] <= 2048 + 7000 / 4 < taken[1e12]


def test_with_late_labels_a_fresh_model_is_judged_without_the_latest(monkeypatch):
    x, y = stream(1400, turn=700)
    asked = []
    judge = adaptive_model.AdaptiveModel._wrong_on_newer

    def wrong_on_newer(self, fresh, examples, half):
        older, newer = examples.part(0, half), examples.part(half, 2 * half)
        alone = copy.deepcopy(fresh)
        relearning.learn_examples(alone, older)
        found = judge(self, fresh, examples, half)
        scores = alone.outputs.scores_of(alone.margins_of(newer.x))
        assert (found == alone.outputs.are_wrong(newer.classes.astype(float), scores)).all()
        asked.append(fresh.n_examples == 2 * half)
        return found

    monkeypatch.setattr(adaptive_model.AdaptiveModel, "_wrong_on_newer", wrong_on_newer)
    events, model = [dict(enumerate(row)) for row in x.tolist()], AdaptiveSVMClassifier()
    for i, event in enumerate(events):
        model.predict_one(event)
        if i >= 50:
            model.learn_one(events[i - 50], int(y[i - 50]))
    assert asked and all(asked)


def test_words_that_nobody_knew_do_not_make_labels_late():
    events, y = words(800, n_new=2)
    model, n_right = AdaptiveSVMClassifier(sparse=True), 0
    for event, label in zip(events, y, strict=True):
        n_right += model.predict_one(event) == label
        model.learn_one(event, label)
        assert not model.model.state.asked[last_label.IS_LATE]
    assert n_right > 0.9 * len(y) and not model.model.combination.digests.any()


def test_an_event_that_is_predicted_often_is_learnt_as_if_once():
    x, y = np.random.default_rng(0).integers(0, 3, (400, 2)), []
    models = [AdaptiveSVMClassifier() for _ in range(2)]
    for row in x.tolist():
        y.append(int(row[0] > row[1]))
        event = {"a": float(row[0]), "b": float(row[1])}
        for model, times in zip(models, (1, 4), strict=True):
            for _ in range(times):
                model.predict_one(event)
            model.learn_one(event, y[-1])
    assert content(models[0]) == content(models[1])
    assert not models[0].model.combination.digests.any()


def test_a_file_has_scale_and_c_of_each_model_at_any_time(tmp_path):
    # From the trial at 256 to the next look the third model has those of the first from before.
    x = np.random.default_rng(0).normal(size=(330, 4)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0.0).astype(int)
    check_one_model(x, y, range(10, 330, 10), tmp_path)


def test_events_without_any_feature_are_learnt():
    events, batches = AdaptiveSVMClassifier(), AdaptiveSVMClassifier()
    for i in range(150):
        events.learn_one({"a": None}, i % 2)
    batches.learn_many(np.full((150, 1), np.nan), [i % 2 for i in range(150)])
    assert events.n_examples == batches.n_examples == 150
    x, y = stream(200)
    assert np.mean(np.array(by_events(events, x, y)[50:]) == y[50:]) > 0.7


@pytest.mark.parametrize(
    ("labels", "weights"), [([1], 1.0), ([1, None, 0], 1.0), ([1, 0, 0], -1.0), ([], 1.0)]
)
def test_a_sparse_batch_that_is_refused_or_empty_changes_nothing(labels, weights):
    x, y = stream(400)
    model = learnt(AdaptiveSVMClassifier(seed=1), x, y)
    before = content(model)
    batch = scipy_sparse.csr_matrix(x[: 3 if labels else 0])
    with contextlib.suppress(FeatureError, LabelError, ParameterError):
        model.learn_many(batch, labels, weights)
    assert content(model) == before and not model.is_sparse


def test_words_are_counted_from_the_first_example_on():
    # The first rows are dense, until they are seen to be mostly zeros.
    events, y = words(300, n_new=1)
    models = [AdaptiveSVMClassifier(), AdaptiveSVMClassifier(sparse=True)]
    for model in models:
        for i, (event, label) in enumerate(zip(events, y, strict=True)):
            model.learn_one(event, label, w=1.0 + i % 3)
    late, early = (model.model.combination for model in models)
    for name in ("counts", "known", "totals"):
        found, expected = getattr(late, name), getattr(early, name)
        both = tuple(slice(0, min(n)) for n in zip(found.shape, expected.shape, strict=True))
        np.testing.assert_allclose(found[both], expected[both])
    assert late.info[combination.N_WORDS] == early.info[combination.N_WORDS]
