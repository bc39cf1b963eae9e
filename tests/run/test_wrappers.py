"""What each wrapper does alike: runs are loops, also late and in parts; copies, files, refusals."""

import copy
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from river import checks, datasets, linear_model, multiclass, preprocessing, tree

import streamsvm
from connectors import MemorySource
from streamsvm import (
    ActiveLearner,
    Compare,
    ConformalSets,
    LASVMClassifier,
    OSPASParser,
    Selective,
    SequencePA,
    Serving,
    StandardScaler,
    SVMSGDClassifier,
    TrackingMonitor,
    kernels,
)
from streamsvm.cli.report import report_rows
from streamsvm.confidence.comparison import Comparison
from streamsvm.errors import (
    CheckpointError,
    FeatureError,
    LabelError,
    ParameterError,
    StreamSVMError,
)
from streamsvm.labels.prediction_sets import LabelSets
from streamsvm.learners.bases.comparison_file import comparison_of
from streamsvm.run import adapters
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from streamsvm.selection.answering import Answering
from streamsvm.selection.asking import STRATEGIES, Asking
from tests import wrappers
from tests.learners.test_conformal_sets import probabilities

PHISHING = [(dict(x), bool(y)) for x, y in datasets.Phishing()]
BANANAS = [(dict(x), bool(y)) for x, y in datasets.Bananas().take(900)]
RBF = kernels.RBF(gamma=1.0)


def scaled():
    return StandardScaler() | SVMSGDClassifier(seed=1)


def rivers():
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


class Wrapped(NamedTuple):
    """A wrapper and another one of it, its events, what they are asked, what counts the answers."""

    make: Callable[..., Any]
    other: Callable[..., Any]
    events: list[Any]
    ask: str
    counter: str
    figures: str
    """The attribute of a run's report."""

    def state_of(self, model: Any) -> Any:
        return getattr(model, self.counter).as_json()

    def asked(self, model: Any, x: Any) -> Any:
        return getattr(model, self.ask)(x)

    def learn(self, model: Any, event: Any, said: Any, is_late: bool = False) -> None:
        if is_late and not isinstance(model, ActiveLearner):
            model.learn_one(*event, given=said)
        elif not isinstance(model, ActiveLearner) or said[1]:
            model.learn_one(*event)


def compare(model, **given):
    return Compare(model, LASVMClassifier(RBF), on_decision="promote", **given)


def asking(strategy, budget=0.1):
    return lambda model: ActiveLearner(model, budget, strategy, seed=3)


WRAPPERS = {
    "sets": Wrapped(
        lambda model: ConformalSets(model, 0.8), ConformalSets, PHISHING,
        "predict_set_one", "sets", "coverage",
    ),
    "answers": Wrapped(
        lambda model: Selective(model, 0.1), Selective, PHISHING,
        "answer_one", "answering", "answers",
    ),
    "compare": Wrapped(
        compare, lambda model: compare(model, level=0.9), BANANAS,
        "predict_both_one", "comparison", "comparison",
    ),
    **{
        f"asking by {strategy}": Wrapped(
            asking(strategy), asking(strategy, 0.2), BANANAS, "predict_one", "asking", "asked",
        )
        for strategy in STRATEGIES
    },
}  # fmt: skip
ALL = pytest.mark.parametrize("name", WRAPPERS)


def test_each_wrapper_is_asked_here_and_everywhere():
    adapted = {*adapters._ADAPTERS}
    assert adapted == {known.cls for known in wrappers.WRAPPERS.values()}
    assert adapted == {type(wrapped.make(SVMSGDClassifier())) for wrapped in WRAPPERS.values()}


def loop(wrapped, model, events, delay=0):
    """Ask each event and learn it so many events later, as a user does; return what was said."""
    said = []
    for i, event in enumerate(events):
        if delay and i >= delay:
            wrapped.learn(model, events[i - delay], said[i - delay], True)
        # A run asks nothing before there is a label to be said; the same is counted.
        is_first = i == 0 and isinstance(model, Compare)
        said.append((None, None) if is_first else wrapped.asked(model, event[0]))
        if not delay:
            wrapped.learn(model, event, said[i])
    for i in range(len(events) - delay, len(events) if delay else 0):
        wrapped.learn(model, events[i], said[i], True)
    return said


def go_on_alike(wrapped, one, other):
    """Check that two wrappers are asked for, answer and learn the same from now on."""
    events = wrapped.events[:60]
    copies = [copy.deepcopy(model) for model in (one, other)]
    assert loop(wrapped, copies[0], events) == loop(wrapped, copies[1], events)
    probabilities = [[m.predict_proba_one(x) for x, _ in events] for m in copies]
    assert probabilities[0] == probabilities[1]


def check_counts(model, said, labels):
    """Check that what a wrapper counts is what it said when the events came."""
    both = list(zip(said, labels, strict=True))
    if isinstance(model, ConformalSets):
        assert model.sets.n_missed == sum(y not in found for found, y in both)
    elif isinstance(model, Selective):
        wrong, counts = sum(one.label not in (None, y) for one, y in both), model.answering.counts
        assert counts["n_seen"] == counts["n_labelled"] == len(both)
        assert counts["n_wrong"] == wrong > 0
    else:
        both = both[: model.comparison.n]
        assert model.comparison.figures()["both_right"] == sum(a == b == y for (a, b), y in both)


@pytest.mark.parametrize("make", [SVMSGDClassifier, rivers])
@ALL
def test_a_run_is_a_loop_of_events(name, make):
    wrapped = WRAPPERS[name]
    model, other = wrapped.make(make()), wrapped.make(make())
    serving = Serving(model, seconds=0.0)
    report = Run(MemorySource(wrapped.events), model, on_progress=serving.refresh).execute()
    said = loop(wrapped, other, wrapped.events)
    assert wrapped.state_of(model) == wrapped.state_of(other)
    go_on_alike(wrapped, model, other)
    n, x = len(wrapped.events), wrapped.events[0][0]
    assert report.learnt == n
    plain = model.classifier if isinstance(model, ActiveLearner) else model
    served = serving.predict_one(x)
    assert served == copy.deepcopy(plain).predict_one(x)
    assert serving.predict_proba_one(x) == plain.predict_proba_one(x)
    rows = [row for row, _ in report_rows(report, {})]
    assert all(rows) and len({*rows}) == len(rows) and not any("_" in row for row in rows)
    figures = getattr(report, wrapped.figures)
    if name == "sets":
        hits = sum(y in found for found, (_, y) in zip(said, wrapped.events, strict=True))
        assert hits == model.sets.n - model.sets.n_missed and report.accuracy > 0.7
        assert figures == model.sets.figures()
        rows, at_rest = [x for x, _ in wrapped.events], model.sets.at_rest()
        expected = [at_rest.of(model.predict_proba_one(x)) for x in rows]
        assert [serving.predict_set_one(x) for x in rows] == expected
    elif name == "answers":
        answers = sum(answer.label is not None for answer in said)
        assert figures["n_answered"] == figures["n_checked"] == answers > 100
        assert figures["answered_error"] < 0.1
        answer, n_seen = serving.answer_one(x), model.answering.n_seen
        assert (answer.label, n_seen) == (served, n + 2)
        model.learn_one(*wrapped.events[0], given=answer)
    elif name == "compare":
        assert figures["record"] == model.record and model.record["in_use"] == "b"
        assert report.n_support_vectors == model.b.n_support_vectors
        assert isinstance(serving.model, LASVMClassifier)
        # The first prediction, None, is not scored; River's model makes one.
        ends, first = model.record["n"], int(make is not rivers)
        both = list(enumerate(zip(said, wrapped.events, strict=True)))[1:]
        right = [p[i >= ends] == y for i, (p, (_, y)) in both]
        assert report.accuracy == pytest.approx(sum(right) / len(right), abs=2e-3)
        assert report.scored == n - first
    else:
        # The first prediction, None, is not scored.
        right = sum(one[0] == y for one, (_, y) in zip(said, wrapped.events, strict=True))
        assert report.accuracy == pytest.approx(right / (n - 1), abs=1e-3)
        assert figures == {"events": n, "asked": model.n_asked, "answered": model.n_asked}
        assert 60 < model.n_asked == model.n_answered < 120


@ALL
def test_late_labels_count_for_what_was_given_also_in_parts(name, tmp_path):
    wrapped, path = WRAPPERS[name], tmp_path / "run.ckpt"
    n = len(wrapped.events)

    def run(model, limit=None, every=None):
        late = LateLabels(delay=30)
        options = {"checkpoint": Checkpoint(path, every)} if every else {}
        report = Run(MemorySource(wrapped.events), model, late=late, limit=limit, **options)
        return report.execute()

    model, other = wrapped.make(scaled()), wrapped.make(scaled())
    report = run(model)
    late = report.late
    if not name.startswith("asking"):
        said = loop(wrapped, other, wrapped.events, 30)
        assert wrapped.state_of(model) == wrapped.state_of(other)
        check_counts(model, said, [y for _, y in wrapped.events])
    assert report.learnt == n and late["held"] == 0
    if name == "sets":
        # Labels come 30 events late: the bound is wider by as many, and the figure knows.
        assert model.sets.n == 1250 and 250 - 9 - 30 < model.sets.n_missed < 250 + 5 + 30
        least, found = report.coverage["coverage_least"], report.coverage["coverage"]
        assert 0.8 - 35 / 1250 <= least <= found
    elif name == "answers":
        assert model.answering.n_labelled == 1250 and report.answers["n_checked"] > 100
    elif name.startswith("asking"):
        assert late["answered"] == model.n_answered == model.n_asked
        assert late["not_asked"] == n - model.n_asked
    took_over = model.record["n"] if name == "compare" else 400
    for limit in (20, took_over + 10, took_over + 60, None):
        again = wrapped.make(scaled())
        last = run(again, limit, every=50)
        kept = streamsvm.load(path)
        if name == "compare":
            # What is kept is from before a run that ends at its limit learns what it holds.
            assert (kept.model is kept.b) == (limit in (took_over + 60, None))
        elif name == "sets" and limit is not None:
            assert kept.sets.n < limit
    assert wrapped.state_of(again) == wrapped.state_of(model)
    go_on_alike(wrapped, again, model)
    assert last.accuracy == report.accuracy
    assert getattr(last, wrapped.figures) == getattr(report, wrapped.figures)
    with pytest.raises(CheckpointError):
        run(wrapped.other(scaled()), every=50)
    with pytest.raises(ParameterError, match="once"):
        Run(MemorySource(wrapped.events), wrapped.make(scaled()), epochs=2)


def drawing(name):
    """Return the wrapper of a name; that of answers draws some of them for an audit."""
    if name == "answers":
        return WRAPPERS[name]._replace(make=lambda m: Selective(m, 0.2, audit=0.5, seed=3))
    return WRAPPERS[name]


@pytest.mark.parametrize("make", [lambda: LASVMClassifier(RBF), scaled, rivers])
@ALL
def test_copies_and_files_go_on_as_the_wrapper_does(name, make, tmp_path):
    wrapped = drawing(name)
    model, events = wrapped.make(make()), wrapped.events[:800]
    loop(wrapped, model, events[:500])
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    if make is rivers:
        with pytest.raises(StreamSVMError, match="LogisticRegression"):
            streamsvm.save(model, tmp_path / "m.svm")
        assert not (tmp_path / "m.svm").exists()
    else:
        streamsvm.save(model, tmp_path / "m.svm")
        others.append(streamsvm.load(tmp_path / "m.svm"))
    # In the middle of a question and its label, too.
    wrapped.asked(model, events[500][0])
    others.append(copy.deepcopy(model))
    wrapped.learn(model, events[500], wrapped.asked(model, events[500][0]))
    expected = loop(wrapped, model, events[500:])
    for other in others[:-1]:
        assert type(other) is type(model)
        wrapped.asked(other, events[500][0])
    for other in others:
        wrapped.learn(other, events[500], wrapped.asked(other, events[500][0]))
        assert loop(wrapped, other, events[500:]) == expected
        assert wrapped.state_of(other) == wrapped.state_of(model)
    fresh = model.clone()
    assert fresh._get_params().keys() == model._get_params().keys()
    assert wrapped.state_of(fresh) == wrapped.state_of(wrapped.make(make()))


@pytest.mark.parametrize("make", [lambda: LASVMClassifier(RBF), scaled, rivers])
@pytest.mark.parametrize("name", ["sets", "answers"])
def test_batches_are_events(name, make):
    draw = np.random.default_rng(4)
    x = draw.normal(size=(900, 3)).astype(np.float32)
    y = (x[:, 0] + 0.3 * draw.normal(size=900) > 0).tolist()
    rows = [dict(enumerate(row)) for row in x.tolist()]
    wrapped = drawing(name)
    events, batches = wrapped.make(make()), wrapped.make(make())
    for row, label in zip(rows[:600], y[:600], strict=True):
        if label:  # with and without a prediction before
            wrapped.asked(events, row)
        events.learn_one(row, label)
    batches.learn_many(x[:150], y[:150])
    batches.learn_many(x[150:600], y[150:600])
    ask = "predict_set_many" if name == "sets" else "predict_many"
    expected = getattr(events, ask)(x[600:])
    assert len({*expected}) > 2
    assert getattr(batches, ask)(x[600:]) == expected
    assert wrapped.state_of(batches) == wrapped.state_of(events)
    figures = [getattr(model, wrapped.counter).figures() for model in (events, batches)]
    assert figures[0] == figures[1]


@ALL
def test_an_event_that_the_model_refuses_is_not_counted(name):
    wrapped = WRAPPERS[name]
    model = wrapped.make(SVMSGDClassifier())
    for i in range(40):
        model.learn_one({"a": float(i % 2)}, bool(i % 2))
    state = wrapped.state_of(model)
    for x, y, error in (({"a": float("inf")}, True, FeatureError), ({"a": 1.0}, None, LabelError)):
        with pytest.raises(error):
            model.learn_one(x, y)
        assert wrapped.state_of(model) == state


def test_rivers_checks():
    models = [Compare(**given) for given in Compare._unit_test_params()]
    for model in (Selective(SVMSGDClassifier(), seed=1), *models):
        for check in checks.yield_checks(model):
            if check.__name__ not in model._unit_test_skips():
                check(model.clone())
    checks.common.check_wrapper_accepts_kwargs(ConformalSets(SVMSGDClassifier()))


REFUSED = {
    Selective: [
        {"model": SequencePA()}, {"model": ConformalSets(SVMSGDClassifier())},
        {"model": linear_model.LinearRegression()}, {"model": ActiveLearner(SVMSGDClassifier())},
        {"model": SVMSGDClassifier}, {"error": 0.0}, {"error": True}, {"level": 1.0},
        {"audit": -0.1},
    ],
    ConformalSets: [
        {"model": OSPASParser()}, {"model": ActiveLearner(SVMSGDClassifier())},
        {"model": SVMSGDClassifier}, {"model": tree.HoeffdingTreeRegressor(), "by_class": True},
        {"model": multiclass.OneVsOneClassifier(linear_model.LogisticRegression())},
        {"coverage": 1.0}, {"coverage": True}, {"coverage": 0.9996}, {"score": "margin"},
    ],
    ActiveLearner: [
        {"classifier": None}, {"classifier": ActiveLearner(SVMSGDClassifier())},
        {"classifier": SVMSGDClassifier}, {"budget": 0.0}, {"budget": 1.5},
        {"budget": float("nan")}, {"strategy": "entropy"}, {"seed": -1}, {"oracle": 5},
        {"candidates": 0, "oracle": len}, {"candidates": 5},
        {"candidates": 5, "oracle": len, "strategy": "random"},
    ],
    Compare: [
        {"a": SVMSGDClassifier}, {"b": linear_model.LinearRegression()}, {"level": 1},
        {"level": True}, {"learns": "b"}, {"learns": ("c",)}, {"on_decision": "swap"},
        {"loss": "absolute"}, {"largest_loss": 0}, {"warm_up": -1},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("cls", "given"), [(cls, given) for cls, all_given in REFUSED.items() for given in all_given]
)
def test_what_cannot_be_wrapped_is_refused(cls, given):
    good = {Compare: ("a", "b"), ActiveLearner: ("classifier",)}.get(cls, ("model",))
    with pytest.raises(ParameterError):
        cls(**{name: SVMSGDClassifier() for name in good} | given)


def comparison_read(content):
    return Compare.of_steps(comparison_of(content), SVMSGDClassifier(), SVMSGDClassifier())


def contents():
    """Return what files hold of each wrapper, and what reads it."""
    sets, found = LabelSets(0.9), Comparison(largest_loss=1.0, kept={"learns": ["b"]})
    for p, y in probabilities(50, 3, 1):
        sets.learn(y, p, sets.of(p))
    found.add(1.0, 0.0)
    asks = ActiveLearner(LASVMClassifier(RBF), 0.1, "uncertainty", seed=3)
    loop(WRAPPERS["asking by uncertainty"], asks, BANANAS[:300])
    return {
        "sets": (LabelSets.from_json, sets.as_json()),
        "answers": (Answering.from_json, Answering().as_json()),
        "compare": (comparison_read, found.as_json()),
        "asking": (Asking.from_json, asks.asking.as_json()),
    }


CHANGES = {
    "sets": [
        {"n_missed": 10**6}, {"kind": "x"}, {"thresholds": []}, {"labels": [1, 1]}, {"lately": 3},
        {"size": "a"}, {"coverage": 2}, {"thresholds": [[0.1, 0.0, [None]]]}, {"counts": [[1, 0]]},
        {"size": -1e300}, {"thresholds": [[-1e300, 0.0, []]]}, {"thresholds": [[1e300, 0.0, []]]},
        {"thresholds": [[0.1, -1e300, []]]}, {"counts": [[50, 9], [0, 0], [0, 0]]},
        {"counts": [[48, 10**6], [1, 0], [1, 0]]}, {"waiting": [-1, -1, 0.0]}, {"n_missed": 0},
        {"n_single": 50, "n_empty": 50},
    ],
    "answers": [
        {"guard": [3, 4, 0]}, {"counts": [[1]]}, {"guard": [0, 0, 2000]}, {"credit": "x"},
        {"guard": [3, 0, 1], "n_labelled": 3}, {"places": [1, 40]}, {"new": [99]},
        {"is_closed": 1}, {"n_answered": 100},
    ],
    "compare": [
        {"level": 2}, {"n": 5}, {"only_a": 9}, {"loss_a": 99.0}, {"first": {"c": 1}},
        {"outcome": {}}, {"outcome": {"in_use": "b"}}, {"gains": [1.0]}, {"largest_loss": -1},
        {"kept": {"learns": ["c"]}}, {"kept": []},
    ],
    "asking": [
        {"n_asked": 10**6}, {"n_seen": -1}, {"draws": [3, [1] * 625, "x"]},
        {"draws": [3, [1] * 7, None]}, {"threshold": "x"}, {"last": [None]},
        {"waiting": [[["a", 1.0]]] * 30}, {"waiting": "x"}, {"budget": 7.0}, {"strategy": "x"},
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_content_that_does_not_hold_together_is_refused(name):
    read, content = contents()[name]
    again = read(content)
    assert (again.comparison if name == "compare" else again).as_json() == content
    for change in CHANGES[name]:
        with pytest.raises((ValueError, TypeError, StreamSVMError)):
            read(content | change)


@ALL
def test_a_pickled_monitor_of_a_wrapper_goes_on(name):
    wrapped = WRAPPERS[name]
    monitor = TrackingMonitor(wrapped.make(scaled()), every=50)
    both = [monitor]
    for i, (x, y) in enumerate(wrapped.events[:300]):
        if i == 100:
            both.append(pickle.loads(pickle.dumps(monitor)))
        for one in both:
            one.model.predict_one(x)
            one.model.learn_one(x, y)
    mine, other = (one.get() for one in both)
    assert other["n_examples"] == mine["n_examples"] > 100
    assert other["accuracy"] == mine["accuracy"]


@pytest.mark.parametrize("model", [None, 3, LASVMClassifier])
def test_what_is_no_model_is_refused(model):
    for use in (lambda: Run(MemorySource(BANANAS), model), lambda: Serving(model)):
        with pytest.raises(ParameterError, match="an object, not a class"):
            use()
