"""Models by key: what crashes leave, whole and in parts; memory, warm starts, files, bad events."""

import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import streamsvm
from streamsvm import (
    ActiveLearner,
    IncrementalSVMRegressor,
    LASVMClassifier,
    Selective,
    SequencePA,
    StandardScaler,
    SVMSGDClassifier,
)
from streamsvm.errors import BadEventError, KeyedStateError, NewerModelFileError, ParameterError
from streamsvm.model_files.container import encoded
from streamsvm.run.keyed import models as keyed
from streamsvm.run.keyed import records
from streamsvm.run.keyed.models import KeyedModels
from tests.run.keyed.fake_state import Changelog, FakeState

N = 120


def events(n=N, seed=0):
    rows = np.random.default_rng(seed).normal(size=(n, 2))
    return [({"a": a, "b": b}, bool(a * b > 0)) for a, b in rows.tolist()]


def undisturbed(model, pairs):
    """Return what is predicted for each event before it is learnt."""
    found = []
    for x, y in pairs:
        found.append(model.predict_one(x))
        model.learn_one(x, y)
    return found


def fed(models, state, pairs, first=0, key="k"):
    return [learnt(models, first + i, *pair, state, key) for i, pair in enumerate(pairs)]


def learnt(models, offset, x, y, state, key="k"):
    return models.predict_then_learn(key, "t", (offset, 0), x, y, state)


def model_in(state, model, **how):
    return KeyedModels(model, **how).model_of("k", "t", state)


class SmallSnapshots(KeyedModels):
    """A worker whose snapshots are due by a log of some 100 bytes, however large they are."""

    n_made = 0

    def __init__(self, model):
        super().__init__(model)
        # As of different releases: snapshots are at different events.
        self.least = (400, 900, 250)[SmallSnapshots.n_made % 3]
        SmallSnapshots.n_made += 1

    def _write_snapshot(self, held, state):
        super()._write_snapshot(held, state)
        held.log.log_bytes = held.log.generation.n_bytes - self.least


STEP = st.one_of(
    st.tuples(st.just("learn"), st.integers(1, 25)),
    st.tuples(st.just("commit"), st.just(0)),
    st.tuples(st.just("other"), st.just(0)),  # the partition goes to the other worker
    st.tuples(st.just("prefix"), st.integers(0, 40)),  # a crash: so many writes are there
    st.tuples(st.just("subset"), st.integers(0, 2**32)),  # a crash: any of the writes are
    # A crash and an empty disk: the writes, or some, appear when later offsets are committed.
    st.tuples(st.just("late"), st.integers(0, 2**32)),
)


# Snapshots of several generations within a commit, and their record or parts alone.
@example([("learn", 15), ("commit", 0), ("learn", 25), ("learn", 25), ("prefix", 3)])
@example([("learn", 5), ("commit", 0), ("learn", 25), *[("subset", i) for i in range(5)]])
# The partition comes back to a worker that has an older model in memory.
@example([("learn", 3), ("other", 0), ("learn", 2), ("other", 0), ("learn", 3)])
# A snapshot that appears late is older than the log of its base.
@example([("learn", 5), ("commit", 0), ("learn", 25), ("late", 1), ("learn", 9), ("commit", 0)] * 2)
@settings(max_examples=40)
@given(st.lists(STEP, max_size=25))
def test_whatever_a_crash_leaves_the_model_is_the_same(program):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed, "LEAST_LOG_BYTES", 400)
        patch.setattr(records, "PART_BYTES", 300)
        patch.setattr(records, "PAGE_BYTES", 150)
        SmallSnapshots.n_made = 0
        check_program(program)


def check_program(program):
    pairs, state, changelog = events(), FakeState(), Changelog()
    workers = [SmallSnapshots(SVMSGDClassifier(seed=0)) for _ in range(2)]
    whole = SVMSGDClassifier(seed=0)
    expected = undisturbed(whole, pairs)
    at = 0
    for what, number in [*program, ("learn", N), ("commit", 0)]:
        if what == "learn":
            for i in range(at, min(N, at + number)):
                answer = learnt(workers[0], i, *pairs[i], state)
                assert answer.learnt != answer.repeated
                # Of events that come again the logs may not have all.
                assert answer.prediction in (
                    [expected[i], None] if answer.repeated else [expected[i]]
                )
            at = min(N, at + number)
            continue
        if what in ("commit", "other"):
            changelog.commit(state, at)
        if what == "other":
            workers.reverse()
        if what in ("prefix", "subset", "late"):
            choice = random.Random(number)
            n = len(state.written)
            some = range(number) if what == "prefix" else choice.sample(range(n), n // 2)
            if what == "late":
                changelog.add(state, at - 1, choice.choice([None, some]))
                state = changelog.state()
            else:
                changelog.add(state, -1, some)
                state.crash(some)
            workers[0] = SmallSnapshots(SVMSGDClassifier(seed=0))
            at = changelog.committed
    for one in (state, changelog.state()):
        assert encoded(model_in(one, SVMSGDClassifier(seed=0))) == encoded(whole)
    assert encoded(workers[0].model_of("k", "t", state)) == encoded(whole)


def test_a_snapshot_that_appears_late_does_not_hide_a_longer_log():
    pairs, changelog = events(400), Changelog()
    for n, until, how in ((0, 20, {}), (20, 200, {"probabilities": True}), (20, 60, {})):
        worker, state = KeyedModels(SVMSGDClassifier(seed=0), **how), changelog.state()
        fed(worker, state, pairs[n:until], n)
        if how:  # killed between changelog and offsets: its log is longer, and has a snapshot
            changelog.add(state, until - 1)
        else:
            changelog.commit(state, until)
    fed(worker, state, pairs[60:230], 60)
    changelog.commit(state, 230)
    assert sum(name in ("model/a", "model/b") for _, name, _ in changelog.records) == 2
    assert model_in(changelog.state(), SVMSGDClassifier(seed=0)).n_examples == 230


def test_models_leave_the_memory_and_come_back():
    state = {key: FakeState() for key in "abc"}
    make = lambda: StandardScaler() | LASVMClassifier()  # noqa: E731
    pairs = {key: events(60, seed) for seed, key in enumerate(state)}
    expected = {key: undisturbed(make(), pairs[key]) for key in state}
    models = KeyedModels(make(), max_models=2, probabilities=True)
    for i in range(60):
        for key in state if i % 3 else "ab":
            at = i if key in "ab" else i - i // 3 - 1
            answer = learnt(models, at, *pairs[key][at], state[key], key)
            assert answer.prediction == expected[key][at]
            assert answer.prediction is None or sum(answer.probabilities.values()) > 0.999
        if i % 10 == 9:
            for one in state.values():
                one.commit()
    assert len(models) == 2 and models.n_restored > 60
    assert 0 < models.bytes < 10**7
    again = learnt(models, 40, *pairs["a"][40], state["a"], "a")
    assert again.repeated and again.prediction == expected["a"][40]
    assert again.probabilities.keys() == {False, True}
    small = KeyedModels(make(), max_bytes=1)
    for key in state:
        fed(small, state[key], pairs[key][-1:], 60, key)
    assert len(small) == 1


def test_an_event_is_written_once_and_older_models_in_memory_are_found_out():
    pairs, state, worker = events(100), FakeState(), KeyedModels(SVMSGDClassifier(seed=0))
    for i in range(100):
        fed(worker, state, pairs[i : i + 1], i)
        state.commit()
    assert len(state.kept) == 101 and state.bytes_committed < 120 * 100
    # Another worker has written two generations, and the last of them is in the place of this one.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed, "LEAST_LOG_BYTES", 400)
        fed(KeyedModels(SVMSGDClassifier(seed=0)), state, events(300, 5), 100)
        state.commit()
    state.kept = {name: v for name, v in state.kept.items() if name != "model/a.100"}
    again = learnt(worker, 400, *pairs[0], state)
    assert worker.n_restored == 1 and again.learnt
    whole = SVMSGDClassifier(seed=0)
    undisturbed(whole, [*pairs, *events(300, 5), pairs[0]])
    assert encoded(worker.model_of("k", "t", state)) == encoded(whole)


def test_a_common_model_is_named_in_the_state_and_not_copied(tmp_path):
    common, pairs = StandardScaler() | LASVMClassifier(), events(400)
    undisturbed(common, pairs[:200])
    streamsvm.save(common, tmp_path / "common.svm")
    state = FakeState()
    fed(KeyedModels(tmp_path / "common.svm"), state, pairs[200:220])
    state.commit()
    assert state.bytes_committed < 3000 < (tmp_path / "common.svm").stat().st_size
    undisturbed(common, pairs[200:220])
    assert same(model_in(state, tmp_path / "common.svm"), common)
    with pytest.raises(KeyedStateError, match=r"common model that is not .* previous_models="):
        model_in(state, LASVMClassifier())
    both = KeyedModels(LASVMClassifier(), previous_models=[tmp_path / "common.svm"])
    assert same(both.model_of("k", "t", state), common)


def same(a, b):
    """Tell whether two models are the same, but for how often kernel rows were in their cache."""
    events_ = events(50, seed=9)
    both = [[model.predict_proba_one(x) for x, _ in events_] for model in (a, b)]
    return both[0] == both[1]


def test_bad_events_change_nothing():
    pairs, state = events(60), FakeState()
    make = lambda: StandardScaler() | LASVMClassifier()  # noqa: E731
    whole, models = make(), KeyedModels(make())
    undisturbed(whole, pairs)
    bad = [({"a": float("inf")}, True), ({"a": "text"}, True), ({"a": [1.0]}, False)]
    bad += [({"a": 1.0}, [True]), ({1: 1.0}, True), ({"a": 1.0}, "x" * 10_000)]
    for i, (x, y) in enumerate(pairs):
        assert learnt(models, 2 * i, x, y, state).learnt
        with pytest.raises(BadEventError):
            learnt(models, 2 * i + 1, *bad[i % len(bad)], state)
        assert not learnt(models, 2 * i + 1, x, None, state).learnt
        written = {**state.kept, **state.written}
        state.commit()
        assert {**state.kept} == written
    assert same(models.model_of("k", "t", state), whole)
    assert same(model_in(state, make()), whole)
    # Values of NumPy are learnt as the numbers that they are.
    x, y = {"a": np.float32(0.5), "b": np.int64(2)}, np.bool_(True)
    assert learnt(models, 200, x, y, state).learnt
    whole.learn_one(x, y)
    assert same(model_in(state, make()), whole)


def test_states_and_parameters_that_cannot_be_used():
    state = FakeState()
    models = KeyedModels(SVMSGDClassifier(seed=0))
    fed(models, state, events(5))
    state.commit()
    with pytest.raises(KeyedStateError, match=r"from topic 't', and now an event comes from 'u'"):
        models.predict_then_learn("k", "u", (9, 0), {"a": 1.0}, True, state)
    kept = dict(state.kept)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "FORMAT", 2)
        fed(KeyedModels(SVMSGDClassifier(seed=0)), newer := FakeState(), events(5))
    with pytest.raises(NewerModelFileError, match=r"written in format 2; .* upgrade all workers"):
        model_in(newer, SVMSGDClassifier(seed=0))
    assert state.kept == kept
    with pytest.raises(ParameterError, match=r"max_models=0: use a whole number of at least 1"):
        KeyedModels(SVMSGDClassifier(seed=0), max_models=0)
    with pytest.raises(FileNotFoundError):
        KeyedModels("none.svm")
    for model in (None, SVMSGDClassifier, [SVMSGDClassifier()], StandardScaler(), SequencePA()):
        with pytest.raises(ParameterError, match=r".* is no model for keys to begin with: use a"):
            KeyedModels(model)
    for model in (Selective(LASVMClassifier()), ActiveLearner(LASVMClassifier())):
        with pytest.raises(ParameterError, match="each prediction changes a"):
            KeyedModels(model)
    with pytest.raises(ParameterError, match=r"probabilities=True: IncrementalSVMRegressor has"):
        KeyedModels(IncrementalSVMRegressor(), probabilities=True)
