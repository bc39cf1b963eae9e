"""Odd events, names, labels and weights: one call for an event does what the general path does.

Each seed gives a stream; both paths must return the same predictions, refuse the same events for
the same reason, and end with the same model to the bit. ``STREAMSVM_FUZZ_SECONDS`` (45 by default,
for all learners together) says how long to go on; seeds are taken from 0 on.
"""

import math
import os
import random
import time
from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import MappingProxyType

import numpy as np
import pytest

from streamsvm import SGDQNClassifier, StandardScaler, SVMSGDClassifier
from tests.odd_events import GeneralPath, GeneralScaler
from tests.slow import slow_but

SECONDS = float(os.environ.get("STREAMSVM_FUZZ_SECONDS", "45"))


class AsFloat:
    """A number for whoever asks."""

    def __float__(self):
        return 2.5


class Failing:
    """A number that cannot be had."""

    def __float__(self):
        raise ZeroDivisionError


class OwnHash:
    """A name or label with a hash of its own, equal to what it wraps."""

    def __init__(self, inner):
        self.inner = inner

    def __hash__(self):
        return hash(self.inner)

    def __eq__(self, other):
        return self.inner == getattr(other, "inner", other)

    def __repr__(self):
        return f"OwnHash({self.inner!r})"


class Int(int):
    """Not exactly an int."""


class Float(float):
    """Not exactly a float."""


class Str(str):
    """Not exactly a string."""


class Dict(dict):
    """Not exactly a dict."""


class Missing(dict):
    """Makes up what is missing."""

    def __missing__(self, name):
        return 1.0


class Hiding(dict):
    """Contradicts itself."""

    def __iter__(self):
        return iter(list(super().__iter__())[1:])


PLAIN_VALUES = [1.0, 2.0, -3.5, 1, 0.0, -0.0, True, np.float32(0.5), np.float64(-1.5)]
VALUES = [
    0, -1, 2**31, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**63, 2**100, 10**400, False,
    None, "1.5", "", b"1", 1j, math.nan, math.inf, -math.inf, 5e-324, 1e-46, 1e39, -1e308,
    3.4028234663852886e38, 3.4028235e38, -3.4028235e38, 3.4028236e38, Decimal("1.5"),
    Decimal("NaN"), Decimal("1e400"), Fraction(1, 3), AsFloat(), Failing(), Int(4), Float(4.5), [],
    {}, object, np.float16(1.5), np.float16(np.inf), np.float32(np.nan), np.float64(np.inf),
    np.longdouble(1.5), np.int8(3), np.int64(2**62), np.uint64(2**64 - 1), np.bool_(True),
    np.array(1.5), np.array([1.0, 2.0]), np.complex128(1), np.str_("1"),
]  # fmt: skip
PLAIN_NAMES = [
    "a",
    "b",
    "c",
    "d",
    "ä",
    "日本",
    "",
    "x" * 300,
    "a\0b",
    0,
    1,
    -1,
    7,
    2**40,
    "1",
    "-1",
]
NAMES = [
    "\ud800", -2, 2**62, 2**63 - 1, -(2**63), 2**63, -(2**200), True, False, None, 1.0, 1.5,
    math.nan, (1, 2), ("a", 1), ("a", ("b",)), (), ("a", 2.0), frozenset("a"), b"a", OwnHash("a"),
    OwnHash(1), Str("a"), Str("zz"), Int(7), Int(9), np.int64(5), np.str_("np"), Ellipsis, int,
]  # fmt: skip
LABELS = [
    "a", True, 1.0, np.int64(1), np.str_("a"), None, math.nan, (1,), ("a", "b"), [1], {},
    np.float64(0.0), Decimal(1), b"x", 2**70, -1, np.bool_(True), Fraction(1), OwnHash("a"),
    np.array([1]), np.array(1), "\ud800", Int(1), Str("a"),
]  # fmt: skip
WEIGHTS = [
    1, True, 0, 0.0, -0.0, -1, -1.0, math.nan, math.inf, -math.inf, 1e300, 5e-324, "1", None,
    np.float32(2), np.int64(2), Decimal(1), [1.0], 10**400, 2**64, Fraction(1, 2), 1j, 0.25, 2,
]  # fmt: skip
KINDS = [
    *[dict] * 12, Counter, lambda content: defaultdict(float, content), OrderedDict, Dict, Missing,
    Hiding, UserDict, ChainMap, MappingProxyType, lambda content: list(content.items()),
    lambda content: None,
]  # fmt: skip


class GeneralSGD(GeneralPath, SVMSGDClassifier):
    pass


class GeneralSGDQN(GeneralPath, SGDQNClassifier):
    pass


LEARNERS = {
    "dense": (SVMSGDClassifier, GeneralSGD, {"t0": 1.0, "sparse": False}),
    "sparse": (SVMSGDClassifier, GeneralSGD, {"t0": 1.0, "sparse": True}),
    "hashed": (SVMSGDClassifier, GeneralSGD, {"t0": 1.0, "hashing": 64}),
    "first rows": (SVMSGDClassifier, GeneralSGD, {}),
    "few features": (SVMSGDClassifier, GeneralSGD, {"t0": 1.0, "max_features": 9, "sparse": True}),
    "weights": (
        SVMSGDClassifier,
        GeneralSGD,
        {"t0": 1.0, "sparse": True, "class_weight": {1: 0.3}},
    ),
    "SGD-QN": (SGDQNClassifier, GeneralSGDQN, {"t0": 1.0, "max_features": 40}),
    "scaler": (StandardScaler, GeneralScaler, {}),
}


def event(draw, has_odd_names):
    content = {name: 1.0 for name in "abc"} if draw.random() < 0.5 else {}
    odd = draw.random() < 0.3
    for _ in range(draw.choice([0, 1, 1, 2, 3, 20])):
        is_odd = odd and draw.random() < 0.3
        name = draw.choice(NAMES) if is_odd and has_odd_names else draw.choice(PLAIN_NAMES)
        is_odd = odd and draw.random() < 0.3
        content[name] = draw.choice(VALUES) if is_odd else draw.choice(PLAIN_VALUES)
    if draw.random() < 0.005:
        content = {f"w{i}": 1.0 for i in range(draw.choice([1023, 1024, 1025, 2100]))}
    return draw.choice(KINDS if odd else [dict])(content)


def outcomes(model, seed, n):
    """Return what became of each call, and all that the model has learnt."""
    draw, found = random.Random(seed), []
    is_scaler = isinstance(model, StandardScaler)
    read = model.transform_one if is_scaler else model.predict_one
    for _ in range(n):
        x = event(draw, seed % 4 == 3)
        y = draw.choice(LABELS) if draw.random() < 0.03 else draw.choice([0, 1])
        w = draw.choice(WEIGHTS) if draw.random() < 0.05 else 1.0
        calls = [partial(read, x), partial(model.learn_one, x, *(() if is_scaler else (y, w)))]
        for call in calls if draw.random() < 0.7 else calls[::-1]:
            try:
                found.append(repr(call()))
            except Exception as error:
                found.append(f"{type(error).__name__}: {error}"[:300])
    if is_scaler:
        return found, repr(model.statistics)
    state = model.state
    d = len(model.schema)
    arrays = () if state is None else (state.weights[:, :, :d].tolist(), state.info.tolist())
    names, calibration = list(map(repr, model.feature_names)), model.targets.calibration.tolist()
    return found, repr((arrays, names, model.classes, calibration, model.counters))


@pytest.mark.parametrize("seconds", slow_but([0.1, SECONDS / len(LEARNERS)], 0.1))
@pytest.mark.parametrize("name", LEARNERS)
def test_both_paths_do_the_same(name, seconds):
    fast, general, params = LEARNERS[name]
    began, seed = time.monotonic(), 0
    while seed < 8 or time.monotonic() - began < seconds:
        short, long = (outcomes(cls(**params), seed, 200) for cls in (fast, general))
        differences = [(i, *pair) for i, pair in enumerate(zip(short[0], long[0], strict=True))]
        differences = [triple for triple in differences if triple[1] != triple[2]]
        assert not differences[:3], f"{name}, seed {seed}"
        assert short[1] == long[1], f"{name}, seed {seed}"
        seed += 1
