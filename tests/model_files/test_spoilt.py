"""Files edited on purpose, with a right checksum: they are refused, or do no harm."""

import copy
import random
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest
from river import datasets

import streamsvm
from streamsvm import (
    AdaptiveSVMClassifier,
    IncrementalOneClassSVM,
    IncrementalSVMClassifier,
    IncrementalSVMRegressor,
    LaRankClassifier,
    LASVMClassifier,
    Nystroem,
    OSPASParser,
    RankBits,
    StandardScaler,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.errors import ModelFileError, StreamSVMError
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.model_files import codec
from streamsvm.selection import Active
from tests.model_files import models
from tests.slow import slow_but

RBF = kernels.RBF(gamma=0.5)


def reread(model, path, change):
    """Save a model, with its content changed by `change(content, arrays)`; return what is read."""
    to_file = codec.to_file

    def spoilt(part):
        content, arrays = copy.deepcopy(to_file(part))
        change(content, arrays)
        return content, arrays

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "to_file", spoilt)
        streamsvm.save(model, path)
    return streamsvm.load(path)


def places(value, path=()) -> Iterator[tuple]:
    """Yield the path to each value of a JSON value."""
    if path:
        yield path
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def put(content, arrays, where, value):
    """Put a value into an array, or at a place of the JSON content."""
    if isinstance(where, str):
        arrays[where] = value(arrays[where])
        return
    for key in where[:-1]:
        content = content[key]
    content[where[-1]] = value


OF_ARRAYS = [
    lambda a: a[:-1],
    lambda a: np.concatenate([a, a]),
    lambda a: a.astype(np.int16),
    lambda a: a[::-1].copy(),
    lambda a: a * 0 - 1,
    lambda a: a * 0 + np.asarray(2**31 - 1).astype(a.dtype),
    lambda a: np.full_like(a, np.nan) if a.dtype.kind == "f" else a + 1,
]
OF_VALUES = [None, -1, 7, 2**62, 0.5, float("nan"), "x", [], {"a": 1}]


def test_there_is_a_model_of_each_learner():
    made = {type(make()) for make in models.MAKE.values()}
    assert made >= {learner.cls for learner in registered_learners()}


@pytest.mark.parametrize("name", slow_but(models.MAKE, "adaptive"))
@pytest.mark.filterwarnings("ignore")
def test_what_is_spoilt_is_refused_or_does_no_harm(name, tmp_path):
    model = models.learnt(name)
    last = list(model.steps.values())[-1] if name == "pipeline" else model
    content, arrays = codec.to_file(last)
    draw, n_loaded = random.Random(0), 0
    changes = [(where, change) for where in arrays for change in OF_ARRAYS]
    changes += [(where, draw.choice(OF_VALUES)) for where in places(content)]
    draw.shuffle(changes)
    for where, change in changes[:200]:
        with suppress(ModelFileError), np.errstate(all="ignore"):
            read = reread(last, tmp_path / "m", lambda *c, p=(where, change): put(*c, *p))
            n_loaded += 1
            with suppress(StreamSVMError):
                models.teach(read, name, 6)
            read.save(tmp_path / "again")
    assert 0 < n_loaded < 200


@pytest.mark.parametrize("name", ["adaptive_classes", "lasvm_classes", "sequence_greedy", "sbp"])
def test_counts_that_cannot_be_are_refused(name, tmp_path):
    model = models.learnt(name)
    content, arrays = codec.to_file(model)
    paths = [p for p in places(content) if str(p[-1]).startswith("n_") and "parameters" not in p]
    names = [n for n in arrays if n.endswith(("cache_counts", "info", "waiting"))]
    assert len(paths) > 5 and bool(names) == (name != "sequence_greedy")
    for where in [*paths, *names]:
        change = (lambda a: a * 0 + 2**62) if isinstance(where, str) else 2**62
        with pytest.raises(ModelFileError):
            reread(model, tmp_path / "m", lambda *c, p=(where, change): put(*c, *p))


def first(value):
    """Return what sets the first number of an array."""
    return lambda array: np.array([value, *array.reshape(-1)[1:]], array.dtype).reshape(array.shape)


def at(*place, value):
    """Return what sets one number of an array."""

    def change(array):
        array[place] = value
        return array

    return change


def with_key(**changes):
    """Return what changes values of a JSON object."""
    return lambda content: content | changes


CONTRADICTIONS = {
    "scales": (
        lambda: LASVMClassifier(scale=True),
        1100,
        [
            {"factors": lambda a: np.ones(9, np.float32)},
            {"factors": lambda a: a * np.nan},
            {"relevant": lambda v: -1},
            {"C_": lambda v: -1.0},
            {"scales": lambda a: -np.abs(a)},
            {"is_flag": lambda a: np.zeros(9, a.dtype)},
            {"scale_limits": lambda a: a * 0 - 1.0},
            {"alpha": lambda a: a[:-1]},
        ],
    ),
    "sparse": (
        lambda: LASVMClassifier(RBF, sparse=True),
        60,
        [
            {"columns": lambda a: np.where(a == a.max(), a.max() + 5, a)},
            {"columns": lambda a: a[::-1].copy()},
            {"row_start": lambda a: a + 1},
            {"row_start": lambda a: a[::-1].copy()},
            {"values": lambda a: a[:-1]},
            {"values": lambda a: a.astype(np.float64)},
        ],
    ),
    "exact": (
        lambda: IncrementalSVMClassifier(RBF),
        60,
        [
            {"exact_beta": lambda a: a + 0.5},
            {"exact_members": lambda a: a[::-1].copy()},
            {"exact_place": lambda a: a * 0},
            {"exact_kind": lambda a: (a + 1) % 3},
            {"exact_number": lambda a: a * 0 + 1},
            {"exact_rows": lambda a: 2 * a},
            {"exact_target": lambda a: -a},
            {"exact_h": lambda a: a + 0.1},
            {"exact_diagonal": lambda a: a * 0},
            {"exact_high": lambda a: 2 * a},
            {"exact_inverse": lambda a: a[:-1]},
            {"exact": lambda v: None},
            {"exact": with_key(b="x")},
            {"exact": with_key(n_added=-1)},
        ],
    ),
    "regression": (
        lambda: IncrementalSVMRegressor(RBF),
        60,
        [{f"exact_{name}": lambda a: a + 3.0} for name in ("beta", "target", "low")],
    ),
    "one class": (
        lambda: IncrementalOneClassSVM(RBF),
        60,
        [{f"exact_{name}": lambda a: a + 3.0} for name in ("beta", "target", "low")],
    ),
    "larank": (
        lambda: LaRankClassifier(RBF, seed=0),
        60,
        [
            *({"slot": first(10_000)}, {"place": first(7)}, {"own": first(-1)}, {"y": first(9)}),
            *({"alive": first(-2)}, {"n_vectors": first(1)}),
            {"parameters": with_key(candidates=2**40)},
        ],
    ),
    "tracking": (lambda: TrackingSVMClassifier(RBF, window=40), 60, [{"members": first(10**6)}]),
    "adaptive": (
        AdaptiveSVMClassifier,
        300,
        [
            {"combination_curvature": lambda a: -np.eye(len(a))},
            {"n_wrong": lambda a: a * 0 + 301},
            {"models": lambda v: v[:-1]},
            {"model_1_bit_columns": first(2)},
        ],
    ),
    "scaler": (StandardScaler, 9, [{"statistics": at(row, value=-1.0)} for row in (0, 2, 3, 4, 7)]),
    "ranks": (
        lambda: RankBits(n_bits=2),
        9,
        [
            {"bits_of_each": lambda v: 3},
            {"columns": first(2)},
            {"columns": lambda a: a * 0},
            {"edges": first(np.inf)},
            {"counts": first(2048)},
            {"values": lambda a: a[1:]},
        ],
    ),
    "nystroem": (
        lambda: Nystroem(RBF, 4),
        9,
        [
            {"inverse": at(2, 0, value=-1.0)},
            {"inverse": at(1, 1, value=-1.0)},
            {"squares": first(-1.0)},
            {"parameters": with_key(n_components=2)},
            {"draws": first(0)},
        ],
    ),
    "candidates": (
        lambda: LASVMClassifier(RBF, selection=Active(candidates=5, share=0.2)),
        60,
        [
            {"candidate_class": lambda a: a + 2},
            {"candidate_class": lambda a: np.concatenate([a, a])},
            {"candidate_weight": lambda a: -a},
            {"candidate_rows": lambda a: a[:1]},
            {"candidate_seeds": lambda a: np.concatenate([a, a])},
            *({"chosen": lambda v: None}, {"chosen": lambda v: {}}),
            *({"chosen": with_key(n_seen=-1)}, {"chosen": with_key(n_near=2**53)}),
            {"chosen": with_key(seed="x")},
            *({"selection": lambda v: {"rule": "x"}}, {"selection": lambda v: "a"}),
            {"selection": lambda v: {"rule": "active", "share": 2.0}},
            {"selection": lambda v: {"rule": "active", "x": 1}},
        ],
    ),
    "parser": (
        lambda: OSPASParser(seed=0),
        5,
        [
            {"symbols": lambda v: [v[0], v[0]]},
            {"relations": lambda v: [99]},
            {"n_words": lambda v: -1},
        ],
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_files_that_contradict_themselves_are_refused(name, tmp_path):
    make, n, changes = CONTRADICTIONS[name]
    model = make()
    for i, (x, y) in enumerate(datasets.Bananas().take(n)):
        if name == "parser":
            x, y = f"u{i % 3} w1", ["r(x,y)"]
        model.learn_one(*((x, y) if hasattr(model, "predict_one") else (x,)))
    reread(model, tmp_path / "m", lambda *content: None)
    for i, each in enumerate(changes):

        def change(content, arrays, each=each):
            for name, what in each.items():
                holder = arrays if name in arrays else content
                holder[name] = what(holder[name])

        with pytest.raises(ModelFileError):
            reread(model, tmp_path / "m", change)
            pytest.fail(f"change {i}, {list(each)}, was not noticed")
