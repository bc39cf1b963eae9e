"""What is at fault: the event, the state, the set-up; and what models are made by."""

import pytest

from streamsvm import (
    HullerClassifier,
    LaRankClassifier,
    LASVMClassifier,
    SBPClassifier,
    SVMSGDClassifier,
)
from streamsvm.errors import BadEventError, KeyedStateError
from streamsvm.model_files.container import encoded
from streamsvm.run.keyed import models as keyed
from streamsvm.run.keyed import records
from streamsvm.run.keyed.models import KeyedModels
from streamsvm.selection.strategies import Random
from tests.run.keyed.fake_state import FakeState
from tests.run.keyed.test_models import events, fed, learnt, model_in


@pytest.mark.parametrize(
    "make", [SBPClassifier, LaRankClassifier, lambda: LASVMClassifier(selection=Random())]
)
def test_models_without_a_seed_come_back_as_they_were(make):
    state, worker = FakeState(), KeyedModels(make())
    fed(worker, state, events(60))
    state.commit()
    live = worker.model_of("k", "t", state)
    again = model_in(state, make())
    rows = [x for x, _ in events(60, 1)]
    assert [live.predict_one(x) for x in rows] == [again.predict_one(x) for x in rows]
    assert live.n_examples == again.n_examples > 0
    assert again.seed == 0


def test_damage_is_told_from_a_commit_that_came_in_part(monkeypatch):
    monkeypatch.setattr(keyed, "LEAST_LOG_BYTES", 400)
    state, pairs = FakeState(), events(600)
    worker = KeyedModels(SVMSGDClassifier())
    for i in range(0, 600, 20):
        fed(worker, state, pairs[i : i + 20], i)
        state.commit()
    numbers = {s: records.generation_of(state.get(s), s).number for s in ("model/a", "model/b")}
    newest = max(numbers, key=numbers.get)
    for name in (newest, f"{newest}:0", f"{newest}.0"):
        for at in (0, 2, 8, len(state.kept[name]) - 3):
            damaged = FakeState()
            value = bytearray(state.kept[name])
            value[at] ^= 1
            damaged.kept = {**state.kept, name: bytes(value)}
            with pytest.raises(KeyedStateError, match=rf"key 'k': .*'{name}' is damaged"):
                model_in(damaged, SVMSGDClassifier())


def test_what_the_state_or_a_restored_model_raises_is_no_fault_of_an_event(monkeypatch):
    class Broken(FakeState):
        fails = "get"

        def get(self, name):
            if self.fails == "get":
                raise Exception("IO error: too many open files")
            return super().get(name)

        def set(self, name, value):
            if self.fails == "set":
                raise ValueError("no space")
            super().set(name, value)

    pairs, state, worker = events(20), Broken(), KeyedModels(SVMSGDClassifier(seed=0))
    with pytest.raises(KeyedStateError, match="key 'k': Exception: IO error"):
        learnt(worker, 0, *pairs[0], state)
    state.fails = "set"
    with pytest.raises(KeyedStateError, match="ValueError: no space"):
        learnt(worker, 0, *pairs[0], state)
    state.fails = ""
    fed(worker, state, pairs)
    assert encoded(worker.model_of("k", "t", state)) == encoded(
        model_in(state, SVMSGDClassifier(seed=0))
    )
    with monkeypatch.context() as patch:
        patch.setattr(SVMSGDClassifier, "learn_one", lambda *_: 1 / 0)
        with pytest.raises(KeyedStateError, match="ZeroDivisionError"):
            model_in(state, SVMSGDClassifier(seed=0))
        # The same, of an event that is new, is about the event.
        with pytest.raises(BadEventError, match="ZeroDivisionError"):
            learnt(KeyedModels(SVMSGDClassifier(seed=0)), 0, *pairs[0], FakeState())


def test_a_state_that_does_not_say_what_is_pending_is_refused():
    class Copies(FakeState):  # Quix Streams does so, with ttl= in any step
        def get(self, name):
            value = super().get(name)
            return None if value is None else bytes(bytearray(value))

    with pytest.raises(KeyedStateError, match="ttl= for the state of any step"):
        fed(KeyedModels(SVMSGDClassifier()), Copies(), events(1))


def test_texts_are_logged_as_they_are_and_very_long_ones_are_refused():
    state, worker = FakeState(), KeyedModels(HullerClassifier(seed=1))
    long, odd = "é" * 330_000, "\ud800 é \n"
    xs = [{f"text={odd}": 1.0}, {f"text={long}": 1.0}, {"a": 1.0}]
    # Names that are in the record, too, and half of a surrogate pair.
    for key, first in (("k", xs), ("l", xs[::-1])):
        fed(worker, state := FakeState(), [(x, bool(i % 2)) for i, x in enumerate(first)], key=key)
        with pytest.raises(BadEventError, match=r"has 1,0\d\d,\d{3} bytes in the log"):
            learnt(worker, 9, {f"text={'é' * 500_000}": 1.0}, True, state, key)
        state.commit()
        again = model_in(state, HullerClassifier(seed=1))
        live = worker.model_of(key, "t", state)
        assert again.feature_names == live.feature_names and again.n_examples == 3


def test_models_of_another_name_or_set_up():
    state, pairs = FakeState(), events(3)
    one = KeyedModels(SVMSGDClassifier(), name="churn", made_by={"target": "churn"})
    two = KeyedModels(SVMSGDClassifier(), name="fraud", made_by={"target": "fraud"})
    assert all(a.learnt for worker in (one, two) for a in fed(worker, state, pairs))
    with pytest.raises(KeyedStateError, match=r"'churn' were made with .* name= of its own"):
        model_in(state, SVMSGDClassifier(), name="churn", made_by={"target": "fraud"})


def test_events_of_one_message_are_learnt_each_and_once():
    state, pairs = FakeState(), events(8)
    for already in (0, 8):
        worker = KeyedModels(SVMSGDClassifier())
        for i, (x, y) in enumerate(pairs):
            answer = worker.predict_then_learn("k", "t", (7, i), x, y, state)
            assert answer.learnt is (i >= already) and answer.repeated is (i < already)
        state.commit()
