"""What is compiled in advance, and that nothing is left for later."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from river.linear_model import LogisticRegression
from river.preprocessing import MinMaxScaler

import streamsvm
from streamsvm import (
    AdaptiveSVMClassifier,
    LaRankClassifier,
    LASVMClassifier,
    Nystroem,
    RandomFourierFeatures,
    RankBits,
    StandardScaler,
    SVMSGDClassifier,
    _compile,
    _compiling,
    kernels,
)
from streamsvm.errors import ParameterError
from streamsvm.learners.bases import rehearsal
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.run import warm as warming
from tests.slow import slow_but

ROOT = Path(__file__).resolve().parents[2]
compiled = pytest.mark.skipif(not _compile.JIT, reason="compiled code is switched off")

# Counts what is compiled or loaded: the cache may have it already, but not the process.
SPECIALISATIONS = """
import numpy as np
import streamsvm
from streamsvm import *
from streamsvm import _compile, kernels
from streamsvm.learners.bases import rehearsal

def specialisations():
    return sum(
        function.address is not None if isinstance(function, _compile.CFunction)
        else len(function.overloads)
        for function in _compile.compiled_functions
    )
"""
LEARNS = """
rng = np.random.default_rng(1)
rows = rng.normal(size=(3002, 4)).tolist()
model = {model}
event = lambda i: dict(zip("abcd", rows[i]))
label = lambda i: rows[i][0] * rows[i][1] > 0.2 * rows[i][2]
{prepare}
for i in range(2):
    model.predict_one(event(i))
    model.learn_one(event(i), label(i))
before = specialisations()
for i in range(2, 3002):
    model.predict_one(event(i))
    model.learn_one(event(i), label(i))
    late = specialisations() - before
    assert not late, (i, late)
    if i % 500 == 0:
        model.predict_proba_one(event(i))
print(before > 0)
"""
MODELS = [
    "LASVMClassifier()",
    "LASVMClassifier(max_support_vectors=90, class_weight='balanced')",
    "LaRankClassifier(seed=0)",
    "SGDQNClassifier()",
    "SVMSGDClassifier()",
    "TrackingSVMClassifier(seed=0)",
]


def run(program):
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


AHEAD = "rehearsal.compile_ahead(model)"
WARM = """model = StandardScaler() | model
streamsvm.warm(model, sparse=False)
before = specialisations()
model.predict_one(event(0))
assert specialisations() == before"""


@compiled
@pytest.mark.parametrize("model", slow_but(MODELS, "LASVMClassifier()"))
def test_nothing_is_compiled_or_loaded_late(model):
    """What a first event in a cold cache does ahead of the others is done here by hand."""
    assert run(SPECIALISATIONS + LEARNS.format(model=model, prepare=AHEAD)) == ["True"]


@compiled
def test_a_pipeline_compiles_nothing_after_warm():
    program = LEARNS.format(model="SVMSGDClassifier()", prepare=WARM)
    assert run(SPECIALISATIONS + program) == ["True"]


@pytest.fixture
def rehearsed(monkeypatch):
    seen = []
    monkeypatch.setattr(rehearsal, "is_on", True)
    monkeypatch.setattr(rehearsal, "_looked_for", set())
    monkeypatch.setattr(rehearsal, "rehearse_events", lambda model, *_: seen.append((model, *_)))
    return seen


def test_an_event_that_compiles_something_compiles_the_rest_and_others_nothing(
    rehearsed, monkeypatch
):
    LASVMClassifier().learn_one({"a": 1.0}, True)
    rehearsed.clear()
    LASVMClassifier().learn_one({"a": 1.0}, True)
    assert not rehearsed
    model, learn = SVMSGDClassifier(l2=0.01), Learner._learn_run

    def compiling(*args):
        _compiling.clock.functions += 1
        return learn(*args)

    monkeypatch.setattr(Learner, "_learn_run", compiling)
    model.learn_one({"a": 1.0}, True)
    assert [(type(m), m.l2, m.n_examples) for m, *_ in rehearsed] == [(SVMSGDClassifier, 0.01, 0)]
    assert model.n_examples == 1


KINDS = [LaRankClassifier, LASVMClassifier, AdaptiveSVMClassifier]


@pytest.mark.parametrize("kind", slow_but(KINDS, *KINDS[1:]))
def test_after_some_events_that_look_sparse_sparse_rows_are_compiled_for(rehearsed, kind):
    """Later a LaRank on words compiled for 41 s in the middle of the stream."""
    flags = dict.fromkeys(map(str, range(60)), 0.0)
    # Flags that each event lists do not become more.
    for n_words, before, n_expected in (8, {}, 0), (60, flags, 0), (60, {}, 1), (60, {}, 1):
        model = kind(gamma="scale", scale=False) if kind is not AdaptiveSVMClassifier else kind()
        for i in range(80):
            words = {f"{i % n_words}": 1.0, f"{7 * i % n_words}": 1.0}
            model.learn_one(before | words, i % 3 % 2)
        turned = [(type(m), turns) for m, _, turns in rehearsed if turns]
        assert turned == n_expected * [(kind, True)]


def test_a_rehearsal_that_fails_is_no_reason_to_fail(monkeypatch):
    def fail(*args):
        raise ValueError("no made-up events")

    monkeypatch.setattr(rehearsal, "is_on", True)
    monkeypatch.setattr(rehearsal, "rehearse_events", fail)
    rehearsal.compile_ahead(SVMSGDClassifier())


def test_understudies_are_bounded_early_and_learn_alone():
    model = LASVMClassifier(C=3.0, max_support_vectors=10_000)
    own = rehearsal.rehearsal_copy(model)
    assert own.C == 3.0 and own.max_support_vectors == 40
    assert model.max_support_vectors == 10_000
    assert rehearsal.rehearsal_copy(LASVMClassifier(window=150)).window == 150
    assert rehearsal.rehearsal_copy(SVMSGDClassifier(), sparse=True, nothing=1).sparse is True


@pytest.fixture
def used(monkeypatch):
    seen = []
    monkeypatch.setattr(warming, "_exercise", seen.append)
    return seen


def test_warm_takes_all_configurations(used):
    moments = []
    assert streamsvm.warm(progress=moments.append) == 0
    # Seven learners with kernels and bounds, one without bounds, the exact one, whose rows are all
    # dense, one with a kernel of its own and a bound, two linear ones, four transformers, three of
    # label sequences with two kinds of inference, one of them with a kernel, too; the ambiguous one
    # with explicit weights, with a kernel, and with a bound, too; two of whole sentences.
    assert len(used) == 7 * (3 * 2 * 2) + 3 * 2 + 3 + 2 * 2 + 2 * 2 + 4 + 3 * 2 + 1 + 3 * 2 + 2
    assert [now.done for now in moments] == list(range(len(used) + 1))
    assert {now.total for now in moments} == {len(used)}
    assert len({now.configuration for now in moments}) == len(used) + 1
    learners = {learner.cls for learner in registered_learners()}
    others = {Nystroem, RandomFourierFeatures, RankBits, StandardScaler}
    assert {type(m) for m in used} == learners | others


def test_warm_keeps_what_a_learner_is(used):
    model = LASVMClassifier(kernel=kernels.Linear(), sparse=True)
    pipeline = MinMaxScaler() | StandardScaler() | SVMSGDClassifier(hashing=64)
    streamsvm.warm([model, pipeline], kernels=["rbf"], sparse=False)
    assert [(type(m), getattr(m, "kernel", None)) for m in used] == [
        (LASVMClassifier, kernels.Linear()), (StandardScaler, None), (SVMSGDClassifier, None)
    ]  # fmt: skip
    assert used[0].sparse is True
    assert used[1] is pipeline["StandardScaler"] and used[2].hashing == 64
    for given in ([kernels.RBF(gamma=2.0)], kernels.RBF(gamma=2.0)):
        used.clear()
        streamsvm.warm(LASVMClassifier, kernels=given, sparse=False)
        assert [m.kernel for m in used] == [kernels.RBF(gamma=2.0)] * 2
    used.clear()
    streamsvm.warm(LASVMClassifier, kernels="linear", sparse=False)
    assert [m.kernel for m in used] == [kernels.Linear()] * 2
    assert all(m.sparse is False for m in used)


def test_warm_says_what_it_takes(used):
    known = "known names are rbf, linear"
    for given, said in (
        ({"kernels": ["rfb"]}, f"kernels has 'rfb': {known}"),
        ({"kernels": 3}, "kernel=3 is not a registered kernel"),
        ({"kernels": "rfb"}, f"kernels has 'rfb': {known}"),
        ({"learners": "lasvm"}, "learners='lasvm': give one of the classes"),
        *(
            ({"learners": other}, r"learners=LogisticRegression .* a pipeline that")
            for other in (StandardScaler() | LogisticRegression(), LogisticRegression())
        ),
    ):
        with pytest.raises(ParameterError, match=said):
            streamsvm.warm(**given)
    assert not used


def test_an_interruption_of_warm_leaves_no_watcher(monkeypatch):
    def interrupted(model):
        raise KeyboardInterrupt

    monkeypatch.setattr(warming, "_exercise", interrupted)
    before = list(_compiling.watchers)
    with pytest.raises(KeyboardInterrupt):
        streamsvm.warm(SVMSGDClassifier, progress=lambda now: None)
    assert _compiling.watchers == before


OF_SENTENCES = """
learners = LaRankSequenceLabeler("{0}"), SequencePA("{0}")
streamsvm.warm(list(learners))
before = specialisations()
words = [[f"w{{(5 * i + t) % 7}}" for t in range(1 + i % 9)] for i in range(300)]
labels = [[word > "w3" for word in sentence] for sentence in words]
bounded = LaRankSequenceLabeler("{0}", window=20, class_weight={{True: 2}})
for learner in (*learners, bounded):
    model = Chain() | learner
    model.learn_many(words, labels)
    model.learn_one(words[0], labels[0])
    model.predict_many(words)
    learner.decision_function_one(words[0])
    streamsvm.save(model, "m.svm")
    streamsvm.load("m.svm").learn_many(words, labels)
    if hasattr(learner, "finish"):
        learner.finish()
"""
AFTER_WARM = {
    "exact": OF_SENTENCES.format("exact"),
    "greedy": OF_SENTENCES.format("greedy"),
    "whole sentences": """
streamsvm.warm([ConceptLabeler, OSPASParser])
before = specialisations()
words = [[f"w{(5 * i + t) % 7}" for t in range(1 + i % 9)] for i in range(200)]
world = {"a": {f"c{i}": f"c{i % 3}" for i in range(7)}, "b": {"c1": "c2"}, "d": {}}
for settings in ConceptLabeler._unit_test_params():
    model, concepts = ConceptLabeler(**settings), [[f"c{w[1:]}" for w in s] for s in words]
    model.learn_many([(s, world) for s in words], [set(c) if len(c) < 3 else c for c in concepts])
    model.predict_one((["unknown", "w1"], {}))
for settings in OSPASParser._unit_test_params():
    model = OSPASParser(**settings)
    model.learn_many(words, [[f"r({s[0]}, q({s[-1]}))", s[0]] for s in words])
    model.predict_one("w1 unknown")
    model.match_one("w1 w2", ["r(w1)"])
    model.save("m.svm")
    streamsvm.load("m.svm").learn_one("w1 w2", ["r(w1, w2)"])
""",
    "tokens with a kernel": """
streamsvm.warm(LaRankSequenceLabeler(kernel=kernels.RBF(gamma=0.5)))
before = specialisations()
random = np.random.default_rng(0)
words = [random.normal(size=(1 + i % 9, 3)) for i in range(200)]
labels = [[str(x[0] > 0.0) for x in word] for word in words]
for bounds in ({}, {"window": 20}, {"max_support_patterns": 20}):
    model = LaRankSequenceLabeler(kernel=kernels.RBF(gamma=0.5), C=1.0, **bounds)
    model.learn_many(words, labels)
    model.predict_many(words)
    model.save("m.svm")
    streamsvm.load("m.svm").learn_many(words, labels)
    model.finish(gap=1e-9, max_passes=1)
""",
}


@compiled
@pytest.mark.parametrize("what", slow_but(AFTER_WARM, "exact"))
def test_after_warm_sentences_compile_nothing(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = f"{SPECIALISATIONS}\n{AFTER_WARM[what]}\nprint(specialisations() - before)"
    assert run(program)[-1] == "0"


COUNTS = """
from numba.core import event
from streamsvm import LASVMClassifier

with event.install_recorder("numba:compile") as recorder:
    model = LASVMClassifier()
    for i in range(8):
        model.predict_one({"a": i % 3, "b": i % 2})
        model.learn_one({"a": i % 3, "b": i % 2}, i % 2 == 0)
print(len(recorder.buffer))
"""


@compiled
def test_a_second_process_compiles_nothing():
    """All compiled code is kept, that of the object of an event's arguments too."""
    run(COUNTS)
    assert run(COUNTS) == ["0"]
