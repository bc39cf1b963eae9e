"""Labels that come later than their events."""

import datetime
import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import datasets, metrics, stream, tree

from connectors import MemorySource
from connectors.batch import Batch
from streamsvm import LASVMClassifier, TrackingMonitor
from streamsvm.errors import BadEventError, LabelError, ParameterError
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.late_labels.held_rows import HeldRows
from streamsvm.run.runner import Run
from tests.slow import slow_but


def bananas(n):
    return [(x, y) for x, y in datasets.Bananas().take(n)]


def same(a, b):
    a, b = a.support_vectors(), b.support_vectors()
    np.testing.assert_array_equal(a.rows, b.rows)
    np.testing.assert_array_equal(a.coefficients, b.coefficients)


class Script(MemorySource):
    """Events and labels in the order given: ("event", key, x) or ("label", key, y); their times."""

    has_answers = True

    def __init__(self, items, times=None):
        super().__init__([({}, None)] * len(items))
        self.items, self.times = items, times

    def batches(self, size=None):
        while self._row < len(self.items):
            kind, key, content = self.items[self._row]
            x, y = (content, None) if kind == "event" else ({}, content)
            columns = {name: pa.array([value], pa.float64()) for name, value in x.items()}
            features = pa.record_batch({"none": pa.nulls(1)} | columns).select(list(x))
            rows, times = np.array([self._row]), None
            if self.times is not None:
                times = np.array([self.times[self._row]], float)
            self._row += 1
            own = {"keys": [key], "are_answers": kind == "label", "timestamps": times}
            yield Batch(features, pa.array([y]), rows, None, **own)

    def resume(self, snapshot):
        self._row = snapshot["row"]


def run_script(items, late=None, times=None, **options):
    learner = LASVMClassifier(max_classes=2)
    late = late or LateLabels()
    report = Run(Script(items, times), learner, late=late, **options).execute()
    return learner, report


@pytest.mark.parametrize("delay", [0, 1, 7, 100, 5000])
@pytest.mark.parametrize("make", [LASVMClassifier, tree.HoeffdingTreeClassifier])
def test_a_delay_gives_rivers_predictions_and_model(make, delay):
    events = bananas(300)
    model, rivers, accuracy = make(), make(), metrics.Accuracy()
    report = Run(MemorySource(events), model, late=LateLabels(delay=delay)).execute()
    # As River's own measure, predictions of None are not scored.
    guesses = {}
    for i, x, y in stream.simulate_qa(events, moment=None, delay=delay):
        if y is None:
            guesses[i] = rivers.predict_one(x)
        else:
            if guesses[i] is not None:
                accuracy.update(y, guesses[i])
            rivers.learn_one(x, y)
    probabilities = [[m.predict_proba_one(x) for x, _ in events] for m in (model, rivers)]
    assert probabilities[0] == probabilities[1]
    assert report.accuracy == accuracy.get()
    assert report.learnt == report.rows == 300 == report.late["answered"]


def test_delays_can_be_seconds_of_a_feature_and_functions():
    events = [({"t": 10.0 * i, "a": float(i % 7)}, i % 7 > 3) for i in range(100)]
    models = []
    for late in (
        LateLabels(delay=5),
        LateLabels(delay=datetime.timedelta(seconds=50), moment="t"),
        LateLabels(delay=lambda event: 50.0, moment="t"),
    ):
        models.append(LASVMClassifier())
        Run(MemorySource(events), models[-1], late=late).execute()
    same(models[0], models[1])
    same(models[0], models[2])


def test_a_clock_that_jumps_or_is_missing_loses_nothing():
    times = [0.0, 1.0, 1e12, 2.0, math.nan, -5.0, 3.0, 4.0, 60.0, 61.0] * 10
    tables = [({"a": float(i % 7), "t": t}, i % 7 > 3) for i, t in enumerate(times)]
    bad = BadEvents("skip")
    late = LateLabels(delay=10, moment="t")
    report = Run(MemorySource(tables), LASVMClassifier(), late=late, bad_events=bad).execute()
    # An event without a time is learnt, too.
    assert (report.learnt, report.late["held"], bad.total) == (100, 0, 0)


def test_predictions_from_before_the_label_are_scored():
    x = {"a": 1.0}
    items = [("event", k, {"a": float(k)}) for k in (0, 1)]
    items += [("label", 0, False), ("label", 1, True), ("event", 2, x), ("event", 3, x)]
    # Learning key 2 as False changes what is predicted for x, but not what was predicted before.
    items += [("label", 2, False), ("label", 3, True)]
    _, report = run_script(items)
    assert report.late["answered"] == report.learnt == 4
    # Both were predicted True; the first two came before any label and are not scored.
    assert report.accuracy == 0.5
    assert report.rows == 4


def test_what_cannot_be_matched_is_counted_and_kept_apart():
    letters = []
    bad = BadEvents(letters.append)
    items = [("event", "a", {"a": 0.0}), ("event", "a", {"a": 2.0}), ("event", None, {"a": 1.0})]
    items += [("event", "b", {"a": 1.0}), ("event", "c", {"a": math.inf})]
    items += [("label", "a", False), ("label", "b", True), ("label", None, True)]
    items += [("label", "c", True), ("label", "x", None)]
    items += [("event", "d", {"a": 1.0}), ("label", "d", "odd")]
    learner, report = run_script(items, bad_events=bad)
    assert learner.n_examples == report.learnt == 2
    assert report.bad == {
        "duplicate key": 1,
        "no key": 1,
        "bad feature": 1,
        "missing key": 1,
        "missing label": 1,
        "third class": 1,
    }
    assert [letter["position"]["row"] for letter in letters] == [1, 2, 4, 7, 9, 10]
    assert report.late["labels_held"] == 1  # that of c
    with pytest.raises(BadEventError, match="row 1"):
        run_script(items)


def test_too_many_events_and_labels_are_given_up_oldest_first():
    items = [("event", k, {"a": float(k)}) for k in range(10)]
    items += [("label", k, bool(k % 2)) for k in range(10)]
    learner, report = run_script(items, LateLabels(most=4))
    assert learner.n_examples == 4
    assert (report.late["never_came"], report.late["without_event"]) == (6, 2)
    _, report = run_script([*items[:10], ("label", 9, True)], LateLabels(patience=3, default=False))
    assert report.labels == {"False": 7, "True": 1}
    assert report.late["held"] == 2


def test_a_label_may_come_before_its_event_and_one_that_comes_twice_is_counted():
    items = [("label", "a", True), ("label", "a", False), ("event", "b", {"a": 1.0})]
    items += [("event", "a", {"a": 0.0}), ("label", "b", False), ("label", "b", True)]
    _, report = run_script(items)
    # The first one counts, whether it comes before its event or after it.
    assert report.labels == {"False": 1, "True": 1}
    assert report.late == {
        "held": 0,
        "labels_held": 0,
        "answered": 2,
        "before_event": 1,
        "never_came": 0,
        "without_event": 0,
        "second_label": 2,
    }


@pytest.mark.parametrize("copies", slow_but([1, 2, 3], 2))
@pytest.mark.parametrize("has_times", slow_but([False, True], True))
def test_keys_that_come_again_with_labels_delivered_twice(copies, has_times, tmp_path):
    """Each label comes again before the next event with its key, with the time of the first."""
    rng = np.random.default_rng(0)
    items, times = [], []
    for i, a in enumerate(rng.normal(size=400).tolist()):
        items += [("event", i % 5, {"a": a}), *[("label", i % 5, a > 0)] * copies]
        times += [10.0 * i] + [10.0 * i + 1] * copies
    if has_times:  # so that copies may also come after the next event with their key
        items, times = late_copies(items, times)
    for limit in (150, None):
        options = {"checkpoint": Checkpoint(tmp_path / "run.ckpt", every=40), "limit": limit}
        learner, report = run_script(items, times=times if has_times else None, **options)
    assert report.accuracy > 0.95
    assert report.learnt == 400
    # The last copies with times may still be labels of further events.
    n_second = report.late["second_label"] + report.late["labels_held"]
    assert n_second == 400 * (copies - 1) and report.late["labels_held"] <= 10
    assert [learner.predict_one({"a": a}) for a in (-2.0, -0.5, 0.5, 2.0)] == [0, 0, 1, 1]


@pytest.mark.parametrize("most", [100_000, 300])
def test_keys_that_come_again_after_all_their_labels(most):
    """As when a topic of labels is read to its end before that of events is."""
    a = np.random.default_rng(0).normal(size=400).tolist()
    items = [("label", i % 5, v > 0) for i, v in enumerate(a)]
    items += [("event", i % 5, {"a": v}) for i, v in enumerate(a)]
    times = [i + 0.5 for i in range(400)] + [*range(400)]
    bad = BadEvents("skip", most=1.0)
    _, report = run_script(items, LateLabels(most=most), times, bad_events=bad)
    # The first hundred labels were given up: their events must not get those of later ones.
    assert report.learnt == report.late["before_event"] == min(most, 400)
    assert report.accuracy > 0.9
    assert bad.total == report.late["without_event"] == 400 - report.learnt


def late_copies(items, times):
    """Return items with each second copy of a label after the next event with its key."""
    moved, waiting = [], {}
    for i, (kind, key, _) in enumerate(items):
        is_copy = kind == "label" and items[i - 1][0] == "label"
        if is_copy:
            waiting.setdefault(key, []).append(i)
            continue
        moved.append(i)
        if kind == "event":
            moved += waiting.pop(key, [])
    moved += [i for left in waiting.values() for i in left]
    return [items[i] for i in moved], [times[i] for i in moved]


def test_the_label_of_an_event_that_was_given_up_is_not_the_next_ones():
    items = [("event", "k", {"a": 0.0}), ("event", "x", {"a": 1.0}), ("event", "y", {"a": 1.0})]
    items += [("label", "k", False), ("event", "k", {"a": 1.0}), ("label", "k", True)]
    late = LateLabels(patience=1, default=True)
    with pytest.raises(LabelError, match="one value only"):
        run_script(items, late, range(6))
    assert (late.counts["second_label"], late.counts["before_event"]) == (1, 0)


def test_the_monitor_scores_what_was_predicted_back_then():
    items = [("event", k, {"a": float(k % 7)}) for k in range(90)]
    items += [("label", k, k % 7 > 3) for k in range(90)]
    monitor = TrackingMonitor(LASVMClassifier())
    report = Run(Script(items), monitor, late=LateLabels()).execute()
    # All were predicted before any label.
    assert monitor.get()["accuracy"] is None
    assert report.accuracy == 0.0  # nothing scored: no prediction had a label behind it


def test_sources_with_answers_need_somebody_to_hold_their_events():
    with pytest.raises(ParameterError, match="give late="):
        Run(Script([]), LASVMClassifier())
    with pytest.raises(ParameterError, match="no keys"):
        Run(MemorySource(bananas(3)), LASVMClassifier(), late=LateLabels()).execute()
    with pytest.raises(ParameterError, match="read once"):
        Run(MemorySource(bananas(3)), LASVMClassifier(), late=LateLabels(), epochs=2)


@pytest.mark.parametrize(
    "wrong", [{"most": 0}, {"patience": 0}, {"delay": -1}, {"delay": math.nan}, {"moment": "t"}]
)
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        LateLabels(**wrong)


class StopError(Exception):
    pass


LATE = [{}, {"delay": 13}, {"default": True, "patience": 20}]


@pytest.mark.parametrize("late", slow_but(LATE, *LATE[1:]))
def test_held_events_live_on_in_the_checkpoint(tmp_path, late):
    rng = np.random.default_rng(0)
    items, waiting = [], []
    for k in range(300):
        items.append(("event", k, {"a": float(k % 7), "b": float(rng.normal())}))
        waiting.append(k)
        while waiting and rng.random() < 0.45:
            k = waiting.pop(rng.integers(len(waiting)))
            items.append(("label", k, k % 7 > 3))
    if "delay" in late:
        events = [({"a": float(k % 7)}, k % 7 > 3) for k in range(300)]

    def source():
        return MemorySource(events) if "delay" in late else Script(items)

    expected = LASVMClassifier()
    whole = Run(source(), expected, late=LateLabels(**late)).execute()
    path = tmp_path / "run.ckpt"
    for stop in (40, 111, 112, 250, None):
        learner = LASVMClassifier()

        def tell(progress, stop=stop):
            if stop is not None and progress.rows >= stop:
                raise StopError

        options = {"checkpoint": Checkpoint(path, 13), "on_progress": tell}
        run = Run(source(), learner, late=LateLabels(**late), **options)
        with pytest.raises(StopError) if stop is not None else nullcontext():
            report = run.execute()
    same(learner, expected)
    assert (report.accuracy, report.late) == (whole.accuracy, whole.late)
    assert report.labels == whole.labels


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 5))
def test_held_rows_give_back_what_they_were_given(steps, size):
    """Whatever the order, also through a file: the rows by number."""
    held, model = HeldRows(), {}
    for step in steps:
        if step % 3:
            names = "ab" if step % 2 else "ba"
            rows = [{names[0]: float(step), names[1]: float(i)} for i in range(size)]
            batch = next(MemorySource([(x, None) for x in rows]).batches())
            if step % 5:  # messages of several partitions
                batch = replace(batch, files=[f"topic[{i % 2}]" for i in range(size)])
            kept = [i for i in range(size) if (step + i) % 4]
            for number, i in zip(held.add(batch, np.array(kept, int)), kept, strict=True):
                model[number] = rows[i], batch.position(i)
        elif model:
            numbers = sorted(model, key=lambda n: (n * step) % 7)[: 1 + step // 6]
            found = []
            for batch, part in held.take(numbers):
                assert len(numbers[part]) == len(batch)
                found += [(event.x, event.position) for event in batch.events()]
            assert found == [model.pop(number) for number in numbers]
        copy = HeldRows()
        copy.restore(*held.state())
        held = copy
    assert len(held) == len(model)
    held.drop(list(model))
    assert len(held) == 0 and not held.state()[1]
