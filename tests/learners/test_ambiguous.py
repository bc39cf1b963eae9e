"""Labels that are bags: what is a bag, one model by all paths, late labels, runs, Theorem 12."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamsvm
from streamsvm import AmbiguousSVMClassifier, TrackingMonitor, kernels
from streamsvm.cli.main import main
from streamsvm.errors import LabelError, ParameterError
from streamsvm.labels.bag_labels import BagLabels, BagTargets
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases.learner import Learner
from streamsvm.monitor.watched import learner_of
from streamsvm.run import requests
from tests.learners.test_all_learners import saved
from tests.reference.slow_ambiguous import SlowAmbiguous, pairwise_loss
from tests.slow import slow_but

KERNEL = {"kernel": kernels.RBF(gamma=0.2), "C": 1.0, "reprocess": 1, "seed": 1}
KINDS = pytest.mark.parametrize("parameters", [{}, KERNEL], ids=["weights", "kernel"])
BUDGET = KERNEL | {"max_support_vectors": 30}


def problem(n, k=5, d=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    return x, (x @ np.random.default_rng(9).normal(size=(d, k))).argmax(axis=1)


def bags_of(y, n_extra, k=5, lacking=0.0, seed=1):
    rng = np.random.default_rng(seed)
    bags = []
    for label in y.tolist():
        others = rng.permutation([c for c in range(k) if c != label]).tolist()
        right = label if rng.random() >= lacking else others.pop()
        bags.append([right, *others[:n_extra]])
    return bags


@pytest.mark.parametrize("parameters", [{}, KERNEL, BUDGET], ids=["weights", "kernel", "budget"])
def test_events_batches_containers_and_files_make_one_model(parameters, tmp_path):
    x, y = problem(200)
    bags = [bag if i % 3 else bag[0] for i, bag in enumerate(bags_of(y, 1))]
    models = [AmbiguousSVMClassifier(**parameters) for _ in range(4)]
    kinds = (list, set, frozenset, np.array)
    for i, (row, bag) in enumerate(zip(x.tolist(), bags, strict=True)):
        event = dict(enumerate(row))
        models[0].predict_one(event)
        models[0].learn_one(event, kinds[i % 4](bag) if isinstance(bag, list) else bag)
    for start in range(0, 200, 70):
        models[1].learn_many(x[start : start + 70], bags[start : start + 70])
    models[1].save(tmp_path / "m.svm")
    lists = [bag if isinstance(bag, list) else [bag] for bag in bags]
    models[2].learn_many(x[:100], pa.array(lists[:100]))
    models[2] = streamsvm.load(tmp_path / "m.svm")
    objects = np.empty(200, object)
    objects[:] = lists
    models[3].learn_many(x[:100], objects[:100])
    # Scalars of Arrow, and a column of lists that are coded.
    for row, bag in zip(x[100:110].tolist(), pa.array(lists[100:110]), strict=True):
        models[3].learn_one(dict(enumerate(row)), bag)
    models[3].learn_many(x[110:150], list(pa.array(lists[110:150])))
    coded = pa.DictionaryArray.from_arrays(pa.array(range(50)), pa.array(lists[150:]))
    models[3].learn_many(x[150:], coded)
    with pytest.raises(LabelError, match="hashable"):
        streamsvm.LASVMClassifier().learn_many(x[150:], coded)
    wanted = models[0].decision_function_many(x)
    for model in models[1:]:
        np.testing.assert_array_equal(model.decision_function_many(x), wanted)
        np.testing.assert_array_equal(model.targets.calibration, models[0].targets.calibration)
        assert model.classes == models[0].classes
    assert models[0].predict_one(dict(enumerate(x[0].tolist()))) == models[1].predict_many(x)[0]


@KINDS
def test_what_is_a_bag(parameters):
    model = AmbiguousSVMClassifier(**parameters)
    model.learn_one({"a": 1.0}, {"new", "b"})
    assert model.classes == ["b", "new"] and model.n_uninformative == 1
    before = model.decision_function_one({"a": 1.0})
    assert set(before.values()) == {0.0}
    model.learn_one({"a": 1.0}, "text")
    model.learn_one({"a": 1.0}, pa.array(["text", "b"]))
    assert model.classes == ["b", "new", "text"]
    for bag, message in [([], "empty"), ([None, "b"], "missing"), ([{}, 1], "hashable")]:
        with pytest.raises(LabelError, match=message):
            model.learn_one({"a": 1.0}, bag)
    # What files do not hold, and what would be one label though several are meant.
    for wrong in (("a", "b"), range(3), (c for c in "ab"), b"a", ["a", ("b",)]):
        with pytest.raises(LabelError, match="neither a label nor a bag"):
            model.learn_one({"a": 1.0}, wrong)
    with pytest.raises(LabelError, match="share of the votes"):
        model.learn_one({"a": 1.0}, Counter("aab"))
    with pytest.raises(LabelError, match="row 1 is empty"):
        model.learn_many(pa.table({"a": [1.0, 2.0]}), [["b"], []])
    assert model.n_examples == 3
    assert ("explicit weights, C=0.03" in model.description) == (not parameters)
    with pytest.raises(LabelError, match="max_classes"):
        AmbiguousSVMClassifier(max_classes=2).learn_one({"a": 1.0}, [1, 2, 3])


def test_a_bag_that_shrinks_takes_the_place_of_the_first_one():
    x, y = problem(120)
    bags, ids = bags_of(y, 2), np.arange(1, 121)
    late, at_once = (AmbiguousSVMClassifier(**KERNEL | {"reprocess": 0}) for _ in range(2))
    late.learn_many(x, bags, ids=ids)
    late.learn_many(x, y, ids=ids)
    at_once.learn_many(x, y, ids=ids)
    for model in (late, at_once):
        model.finish(share=1e-4)
    # Without what an example adds to its own scores.
    own = late.solver.own_scores(ids[::-1], 5)[::-1]
    kept = late.kept_numbers() - 1
    np.testing.assert_allclose(own[kept], late.solver.coefficients(len(kept)), rtol=1e-6)
    assert not own[np.setdiff1d(np.arange(120), kept)].any() and own[kept].any()
    rest = late.decision_function_many(x) - own
    wanted = [late.classes[c] for c in rest.argmax(axis=1)]
    every = [[0, 1, 2, 3, 4]] * 120
    assert late.best_candidates(x, every, ids) == wanted
    for wrong in (ids[:-1], ids - 1, ids / 2, np.ones(120, int), ["a"] * 120):
        with pytest.raises(ParameterError, match="ids"):
            late.best_candidates(x, every, wrong)
    with pytest.raises(LabelError, match="119 labels, for 120 rows"):
        late.best_candidates(x, every[1:], ids)
    # Both are near the only optimum over their examples; those without a loss differ.
    assert late.support_vectors().labels.count(2) > 5
    assert all(not isinstance(label, frozenset) for label in late.support_vectors().labels)
    assert (late.predict_many(x) == at_once.predict_many(x)).mean() > 0.9
    assert late.duality_gap() < 1e-3


def test_finish_is_bounded_where_C_is_large(caplog):
    x, _ = problem(60)
    rng, sweeps = np.random.default_rng(3), []
    model = AmbiguousSVMClassifier(kernel=kernels.RBF(gamma=1.0), C=1e6, seed=1)
    model.learn_many(x, [{int(a), int(b)} for a, b in rng.integers(4, size=(60, 2))])
    model.finish(lambda gap, n: sweeps.append(gap))
    assert 100 < len(sweeps) < 1000 and "finish ended before the optimum" in caplog.text
    model.unlearn([5])
    assert not model.audit([5])[5].is_kept
    with pytest.raises(LabelError, match="whole number of 266 bits"):
        model.learn_one({"x0": 1.0}, [1, 10**80])


def test_a_budget_bounds_memory_and_errs_little_more():
    x, y = problem(3000)
    x_test, y_test = problem(1000, seed=5)
    bags, parts, errors = bags_of(y, 1), [], []
    for limit in (None, 200):
        model = AmbiguousSVMClassifier(**KERNEL, max_support_vectors=limit)
        for start in (0, 1500):
            model.learn_many(x[start : start + 1500], bags[start : start + 1500])
            parts.append(sum(model.solver.memory_parts.values()))
            errors.append(np.mean(model.predict_many(x_test) != y_test))
    assert model.n_support_vectors <= 200 == len(model.kept_numbers())
    assert parts[3] == parts[2] < parts[1] / 3
    assert errors[3] < errors[1] + 0.05
    monitor = TrackingMonitor(model)
    assert model.covers == "merged" and model.regret_bound is monitor.get()["regret_bound"] is None
    assert model.certificate.value > 0.0
    gap = model.duality_gap()
    model.finish()
    assert model.duality_gap() < gap and model.n_support_vectors <= 200
    with pytest.raises(ParameterError, match="without a kernel cannot forget"):
        requests.learner_of(AmbiguousSVMClassifier())


@KINDS
def test_the_regret_bound_holds_and_the_monitor_shows_it(parameters):
    x, y = problem(400)
    model = AmbiguousSVMClassifier(**parameters)
    monitor = TrackingMonitor(model)
    model.learn_many(x, bags_of(y, 1))
    values = monitor.get()
    assert values["regret_bound"] == model.regret_bound
    if not model.reprocess:
        assert model.regret_bound <= model.papers_regret_bound
    assert values["mean_loss"] == model.mean_loss > 0.0
    # The final w has the norm that the bound is about: its own mean loss is not so much smaller.
    k, scores = 5, model.decision_function_many(x)
    place = {label: i for i, label in enumerate(model.classes)}
    losses = []
    for row, bag in zip(scores, bags_of(y, 1), strict=True):
        own = [place[label] for label in bag]
        rest = [z for z in range(k) if z not in own]
        losses.append(np.maximum(0.0, 1.0 - row[own][:, None] + row[rest]).mean())
    assert model.mean_loss - np.mean(losses) <= model.regret_bound + 0.02
    if model.has_dual:
        primal = 0.5 * model.squared_norm + model.kept_gap().cost * np.mean(losses)
        assert model.dual <= primal and model.certificate.value > 0.0
    else:
        norm = sum(w * w for of_label in model.weights.values() for w in of_label.values())
        norm += sum(b * b for b in model.intercept.values()) / model.bias_rate
        assert model.squared_norm == pytest.approx(norm)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("parameters", [{}, {"averaged": False, "bias_rate": 0.0, "C": 0.5}])
def test_the_mean_of_the_weights_predicts_as_of_the_slow_twin(parameters, sparse, tmp_path):
    x, y = problem(150)
    bags = bags_of(y, 1)
    model = AmbiguousSVMClassifier(sparse=sparse, **parameters)
    model.learn_many(np.zeros((5, 4)), np.arange(5), np.zeros(5))  # the labels only
    slow = SlowAmbiguous(4, 5, model.C_, model.bias_rate)
    for row, bag in zip(x, bags, strict=True):
        slow.learn(row, bag)
    model.learn_many(x[:90], bags[:90])
    model = saved(model, tmp_path / "m.svm")
    model.learn_many(x[90:], bags[90:])
    w = slow.mean if model.averaged else slow.w
    assert np.abs(slow.mean - slow.w).max() > 0.05
    np.testing.assert_allclose(model.decision_function_many(x), slow.scores(x, w), atol=1e-5)
    np.testing.assert_allclose(
        [[*of.values()] for of in model.weights.values()], w[:4].T, atol=1e-5
    )
    np.testing.assert_allclose([*model.intercept.values()], slow.scores(np.zeros(4), w), atol=1e-5)
    assert model.dual == pytest.approx(slow.dual_value(), rel=1e-4)
    assert model.mean_loss == pytest.approx(slow.losses / 150, rel=1e-4)
    # Weak duality: for any w the regret is at most the bound of its norm.
    for other in (slow.w, slow.mean):
        losses = [pairwise_loss(slow.scores(r, other), b) for r, b in zip(x, bags, strict=True)]
        assert slow.dual_value() <= 0.5 * (other**2).sum() + slow.C * sum(losses)


def test_a_noisy_stream_is_learnt_and_labels_may_need_a_bias():
    rng = np.random.default_rng(61)
    y = rng.integers(0, 3, 6000)
    x = (1.3 * np.eye(3)[y] @ rng.normal(size=(3, 20)) * 0.5 + rng.normal(size=(6000, 20))).astype(
        np.float32
    )
    model = AmbiguousSVMClassifier()
    model.learn_many(x[:4990], bags_of(y[:4990], 1, k=3))
    errors = []
    for t in range(4990, 5000):
        model.learn_many(x[t : t + 1], bags_of(y[t : t + 1], 1, k=3, seed=t))
        errors.append(np.mean(model.predict_many(x[5000:]) != y[5000:]))
    one = AmbiguousSVMClassifier()
    one.learn_many(x[:5000], y[:5000])
    assert max(errors) < np.mean(one.predict_many(x[5000:]) != y[5000:]) + 0.03
    assert max(errors) - min(errors) < 0.005
    model = AmbiguousSVMClassifier()
    model.learn_many(x[:5000], x[:5000, 0] > 1.0)
    assert np.mean(model.predict_many(x[5000:]) == (x[5000:, 0] > 1.0)) > 0.94


@pytest.mark.parametrize(("C", "share", "more"), [(None, 0.8, 0.15), (0.1, 0.75, 0.035)])
def test_theorem_12_errors_fall_to_those_without_ambiguity(C, share, more):
    """At ambiguity 1, 2, 3, and with 30 % of bags that lack the label, more examples help.

    With C / sqrt(n) up to those of the learner that sees the labels, which errs more, too.
    """
    x, y = problem(12_000)
    x_test, y_test = problem(3000, seed=5)
    settings = [(0, 0.0), (1, 0.0), (2, 0.0), (3, 0.0), (1, 0.3)]
    errors = {}
    for setting in settings:
        bags = bags_of(y, setting[0], lacking=setting[1])
        for n in (300, 12_000):
            model = AmbiguousSVMClassifier(C=C and C / n**0.5)
            model.learn_many(x[:n], bags[:n])
            errors[setting, n] = np.mean(model.predict_many(x_test) != y_test)
    for setting in settings[1:]:
        assert errors[setting, 12_000] < share * errors[setting, 300]
        assert errors[setting, 12_000] < errors[settings[0], 12_000] + more


def test_replay_takes_a_list_column_and_the_truth(tmp_path, capsys):
    x, y = problem(600)
    bags: list[list[str]] = [[f"c{label}" for label in bag] for bag in bags_of(y, 1)]
    bags[7] = []
    truth = [f"c{label}" for label in y]
    columns = {f"x{c}": x[:, c] for c in range(4)}
    columns |= {"bag": pa.array(bags), "truth": pa.array([None, *truth[1:]])}
    pq.write_table(pa.table(columns), tmp_path / "bags.parquet")
    base = ["replay", str(tmp_path / "bags.parquet"), "--target", "bag", "--json", "--truth"]
    letters = ["--dead-letters", str(tmp_path / "letters.jsonl")]
    assert main([*base, "truth", "--save", str(tmp_path / "m.svm"), *letters]) == 0
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert "learner: ambiguous" in printed.err and report["monitor"]["regret_bound"] > 0.0
    assert "the bag has no candidate" in (tmp_path / "letters.jsonl").read_text()
    learner = learner_of(streamsvm.load(tmp_path / "m.svm"))
    assert sorted(learner.classes) == ["c0", "c1", "c2", "c3", "c4"] and learner.n_examples == 599
    assert 0.5 < report["accuracy"] < 1.0
    # Of the test file, too; row 0 has no truth, row 7 no bag.
    assert main([*base, "truth", "--test", str(tmp_path / "bags.parquet"), *letters]) == 0
    tested = json.loads(capsys.readouterr().out)
    rows, out = (str(tmp_path / name) for name in ("rows.parquet", "out.parquet"))
    pq.write_table(pa.table({name: columns[name] for name in list(columns)[:4]}), rows)
    assert main(["predict", str(tmp_path / "m.svm"), rows, "-o", out]) == 0
    guesses = pq.read_table(out).column("prediction").to_pylist()
    capsys.readouterr()
    wrong = sum(g != t for g, t in zip(guesses[1:], truth[1:], strict=True))
    wrong += guesses[0] not in bags[0]
    assert tested["test_rows"] == 600 and tested["test_error"] == pytest.approx(wrong / 600)
    for name, message in [("bag", "the target itself"), ("lists", "a column of list")]:
        pq.write_table(pa.table(columns | {"lists": pa.array(bags)}), tmp_path / "lists.parquet")
        assert main([*base[:1], str(tmp_path / "lists.parquet"), *base[2:], name]) == 2
        assert message in capsys.readouterr().err
    assert main([*base[:4], "--json", "--exclude", "truth", *letters]) == 0
    in_bag = json.loads(capsys.readouterr().out)["accuracy"]
    assert in_bag > report["accuracy"] + 0.03
    assert main([*base[:4], "--exclude", "truth", *letters]) == 0
    said = capsys.readouterr().out
    assert "share in the bag" in said and "balanced" not in said and "classes" not in said
    # The truth of rows that wait for their labels, which a checkpoint holds, too.
    run = [*base, "truth", *letters, "--label-delay"]
    resumed = [*run, "30", "--checkpoint", str(tmp_path / "truth.ckpt")]
    assert main([*resumed, "--limit", "250"]) == main(resumed) == 0
    assert main([*run, "30"]) == main([*run, "0"]) == 0
    of_runs = [json.loads(line)["accuracy"] for line in capsys.readouterr().out.splitlines()]
    assert of_runs[1] == of_runs[2] and max(of_runs) < in_bag - 0.01
    assert of_runs[3] == pytest.approx(report["accuracy"], abs=0.01)
    # Of rows whose labels are not asked for, too.
    asking = [*base, "truth", *letters, "--label-budget", "0.5", "--seed", "1"]
    assert main(asking) == main([*asking, "--label-delay", "30"]) == 0
    for line in capsys.readouterr().out.splitlines():
        assert 0.6 < json.loads(line)["accuracy"] < in_bag
    for more in ([], ["--reprocess", "1"]):
        assert main([*base, "truth", *letters, "--kernel", "rbf", *more]) == 2
        assert "add --gamma" in capsys.readouterr().err
    late = [*base[:4], "--exclude", "truth", "--label-delay", "30", "--quiet", *letters]
    late += ["--checkpoint", str(tmp_path / "run.ckpt"), "--save", str(tmp_path / "late.svm")]
    assert main([*late, "--limit", "300"]) == main(late) == 0
    assert learner_of(streamsvm.load(tmp_path / "late.svm")).n_examples >= 560
    capsys.readouterr()
    assert main([*base[:4], "--learner", "lasvm"]) == 1
    assert "AmbiguousSVMClassifier" in capsys.readouterr().err


def test_only_the_bags_of_the_rows_are_looked_at():
    class Counted(list):
        looks = 0

        def __iter__(self):
            Counted.looks += len(self)
            return super().__iter__()

        def __getitem__(self, i):
            Counted.looks += 1
            return super().__getitem__(i)

    bags = [frozenset({i, i + 1, 5000}) for i in range(1000)]
    column = LabelColumn(np.arange(1000), Counted(bags))
    targets = BagTargets(BagLabels([*range(1001), 5000]))
    found = np.zeros((1000, 1002))
    for i in range(0, 1000, 2):
        found[i : i + 2] = targets.in_bags(column[i : i + 2])
    assert Counted.looks <= 2000
    rows, places = np.nonzero(found)
    labels = [*range(1001), 5000]
    wanted = [(i, one) for i, bag in enumerate(bags) for one in sorted(bag)]
    assert list(zip(rows.tolist(), [labels[p] for p in places], strict=True)) == wanted


@pytest.mark.parametrize(
    "sparse", slow_but([False, True], False, compiling="AmbiguousSVMClassifier sparse")
)
def test_bags_of_known_labels_are_learnt_by_one_compiled_call(sparse, monkeypatch):
    x, y = problem(120)
    bags, events = bags_of(y, 1), [dict(enumerate(row)) for row in x.tolist()]
    models = [AmbiguousSVMClassifier(sparse=sparse) for _ in range(2)]
    monitors = [TrackingMonitor(model) for model in models]
    models[0].learn_many(x, bags)
    for i, (event, bag) in enumerate(zip(events, bags, strict=True)):
        if i == 20:
            monkeypatch.setattr(Learner, "learn_checked", None)
        if i % 3:
            models[1].predict_one(events[i - 1])
        models[1].learn_one(event, frozenset(bag) if i % 2 else bag)
    monkeypatch.undo()
    for model, monitor in zip(models, monitors, strict=True):
        np.testing.assert_array_equal(
            model.decision_function_many(x), models[0].decision_function_many(x)
        )
        np.testing.assert_array_equal(model.targets.calibration, models[0].targets.calibration)
        assert monitor.get()["accuracy"] == monitors[0].get()["accuracy"]


def test_probabilities_of_bags_are_as_sure_as_they_are_right():
    """At 3 further candidates the mean confidence was .13 above the share that is right."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9000, 6)).astype(np.float32)
    y = (x @ rng.normal(size=(6, 5)) + rng.gumbel(size=(9000, 5))).argmax(axis=1)
    bags = bags_of(y, 3)
    model = AmbiguousSVMClassifier(C=0.01)
    model.learn_many(x[:6000], bags[:6000])
    of_each = model.predict_proba_many(x[6000:])
    sure = np.column_stack(list(of_each.values())).max(axis=1).mean()
    right = (model.predict_many(x[6000:]) == y[6000:]).mean()
    assert abs(sure - right) < 0.05


def test_bags_have_no_figures_by_label():
    """A wrong prediction counted for the bag's first label: accuracy 1, balanced .5."""
    rng = np.random.default_rng(0)
    monitor = TrackingMonitor(AmbiguousSVMClassifier())
    for label in rng.choice(list("pqrs"), 300).tolist():
        monitor.learn_one({"a": float(rng.normal()), "b": 1.0}, {label, "z"})
    values = monitor.get()
    assert 0.9 < values["accuracy"] < 1.0 and values["balanced_accuracy"] is None
    assert monitor.recall == {} and values["accuracy_low"] < values["accuracy"]
