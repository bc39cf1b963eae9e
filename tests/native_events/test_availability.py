"""When machine code reads events: what is checked, and how it is switched off."""

import ctypes
import sys

import numpy as np
import pytest

from streamsvm import SGDQNClassifier, StandardScaler, SVMSGDClassifier, native_events
from streamsvm.errors import StaleAddressError
from streamsvm.learners.bases.linear import linear_native
from streamsvm.native_events import availability
from streamsvm.native_events import linear_events as fields
from tests.safety.programs import run

needs_native_events = pytest.mark.skipif(not native_events.is_on(), reason="native events are off")


@pytest.fixture
def model():
    model = SVMSGDClassifier(t0=10.0)
    for i in range(6):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    return model


@needs_native_events
def test_the_switch_closes_all_paths_and_opens_them_again(model):
    scaler = StandardScaler()
    scaler.learn_one({"a": 1.0})
    x = {"a": 1.0, "b": 2.0}
    predict, expected = model.fast_path.predict, model.predict_one(x)
    assert predict(x) is not None
    try:
        assert native_events.switch(False) is False and not native_events.is_on()
        assert predict(x) is scaler._fast_path.transform({"a": 1.0}) is None
        assert model.predict_one(x) == expected
        model.learn_one(x, True)
        scaler.learn_one({"a": 2.0})
        # Nothing is kept for later: no table, no vocabulary.
        assert not model.fast_path.is_open and scaler._fast_path is None
    finally:
        assert native_events.switch(True) is True
    model.learn_one(x, True)
    scaler.learn_one({"a": 3.0})
    assert model.fast_path.is_open and scaler._fast_path.is_open
    assert model.n_examples == 8 and scaler.statistics["a"][0] == 3


STATE = """
import sys
from streamsvm import StandardScaler, SVMSGDClassifier, native_events

model, scaler = SVMSGDClassifier(), StandardScaler()
for i in range(40):
    x = {"a": float(i % 7), "b": 1.0, f"c{i % 3}": 2.0}
    scaler.learn_one(x)
    model.predict_one(x)
    model.learn_one(x, "pqr"[i % 7 % 3])
print(native_events.is_on(), model.fast_path.is_open, scaler._fast_path is not None)
print(model.weights, scaler.transform_one({"a": 1.0}))
"""


@needs_native_events
def test_the_environment_switches_it_off_or_to_debug():
    found = {mode: run(STATE, STREAMSVM_NATIVE_EVENTS=mode) for mode in ("0", "1", "debug", "")}
    assert found["0"].startswith("False False False\n")
    assert found["1"].startswith("True True True\n")
    assert found["debug"] == found[""] == found["1"]
    assert found["0"].split("\n", 1)[1] == found["1"].split("\n", 1)[1]


def test_another_value_of_the_variable_is_refused():
    with pytest.raises(AssertionError, match="'maybe': use 0 .off., 1 .on. or debug"):
        run(STATE, STREAMSVM_NATIVE_EVENTS="maybe")


CHECKS = """
import ctypes, sys
from streamsvm.native_events import availability
spoil = sys.argv[1]
if spoil == "type":
    availability.TYPE_OFFSET += 8
elif spoil == "value":
    availability.VALUE_OFFSET -= 8
else:
    class Fake:
        def __init__(self, found): self.found = found
        def __call__(self, *arguments): return self.found
    api = availability._own_api()
    setattr(api, spoil, Fake(0))
    availability._own_api = lambda: api
assert not availability._is_layout_known(), spoil
"""


@needs_native_events
@pytest.mark.parametrize(
    "spoil",
    ["type", "value", "PyDict_Next", "PyLong_AsLongLongAndOverflow", "PyUnicode_Compare"],
)
def test_an_interpreter_that_differs_is_noticed(spoil):
    assert availability._is_layout_known()
    run(CHECKS, spoil)


SHARED = """
import ctypes
api = ctypes.pythonapi
names = ("PyDict_Next", "PyLong_AsLongLongAndOverflow", "PyUnicode_Compare")
for name in names:
    # Types that another library has set.
    getattr(api, name).argtypes, getattr(api, name).restype = (ctypes.c_char,), ctypes.c_char
from streamsvm.native_events import availability
for name in names:
    assert getattr(api, name).argtypes == (ctypes.c_char,), name
    assert getattr(api, name).restype is ctypes.c_char, name
assert availability.POSSIBLE and availability._is_layout_known()
"""


@needs_native_events
def test_functions_that_other_libraries_use_are_left_alone():
    run(SHARED)


def test_without_the_interpreters_functions_the_layout_is_unknown(monkeypatch):
    monkeypatch.delattr(ctypes, "pythonapi")
    assert not availability._is_layout_known()


def test_untried_versions_are_left_alone(monkeypatch):
    for version in availability.TRIED:
        assert version >= (3, 11)
    monkeypatch.setattr(sys, "version_info", (3, 99, 0, "final", 0))
    assert not availability._is_tried()


def test_a_lock_of_another_layout_is_noticed(monkeypatch):
    monkeypatch.setattr(availability, "_word_at", lambda address: 0)
    assert availability._lock_offset() is None
    monkeypatch.setattr(availability, "_word_at", lambda address: address)
    assert availability._lock_offset() is None


ADDRESSES = [
    fields.NUMBERS, fields.N_LEARNT, fields.WEIGHTS, fields.INFO, fields.N_OUTPUTS,
    fields.N_COLUMNS, fields.CALIBRATION, fields.BLOCK, fields.N_LABELS, fields.LABELS,
    fields.FACTORS, fields.MARGINS,
]  # fmt: skip


@needs_native_events
@pytest.mark.parametrize("cls", [SVMSGDClassifier, SGDQNClassifier])
@pytest.mark.parametrize("sparse", [False, True])
def test_each_wrong_address_of_a_table_is_found(cls, sparse):
    model = cls(sparse=sparse)
    for i in range(5):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, bool(i % 2))
    path = model.fast_path
    path.check(linear_native._target_of(model, model.state), model.solver.generation.now)
    for field in ADDRESSES:
        path._table[field] += 8
        with pytest.raises(StaleAddressError, match=str(field)):
            path.check(linear_native._target_of(model, model.state), model.solver.generation.now)
        path._table[field] -= 8
    for field in path._reader.layout:
        path._reader.fields[field] += 8
        with pytest.raises(StaleAddressError):
            path.check(linear_native._target_of(model, model.state), model.solver.generation.now)
        path._reader.fields[field] -= 8
    # As if somebody replaced an array, and forgot to close the path.
    target = linear_native._target_of(model, model.state)
    for part in ("calibration", "state", "block"):
        other = {
            "calibration": target.calibration.copy(),
            "state": target.state._replace(weights=target.state.weights.copy()),
            "block": None,
        }[part]
        with pytest.raises(StaleAddressError):
            path.check(target._replace(**{part: other}), model.solver.generation.now)
    path.check(target, model.solver.generation.now)


@needs_native_events
def test_each_wrong_address_of_a_scaler_is_found():
    scaler = StandardScaler()
    scaler.learn_one({"a": 1.0, "b": 2.0})
    path = scaler._fast_path
    path.check(scaler._statistics, scaler._generation.now)
    with pytest.raises(StaleAddressError):
        path.check(scaler._statistics.copy(), scaler._generation.now)
    path._reader.fields[next(iter(path._reader.layout))] += 8
    with pytest.raises(StaleAddressError):
        path.check(scaler._statistics, scaler._generation.now)


DEBUG = """
from streamsvm import StandardScaler, SVMSGDClassifier
from streamsvm.errors import StaleAddressError

model, scaler = SVMSGDClassifier(t0=1.0), StandardScaler()
for i in range(6):
    scaler.learn_one({"a": 1.0 + i, "b": 1.0})
    model.learn_one({"a": 1.0 + i, "b": 1.0}, i % 2)
model.state = model.state._replace(weights=model.state.weights.copy())
scaler._statistics = scaler._statistics.copy()
x = {"a": 1.0, "b": 2.0}
uses = (
    lambda: model.predict_one(x), lambda: model.learn_one(x, 1),
    lambda: scaler.learn_one(x), lambda: scaler.transform_one(x),
)
for use in uses:
    try:
        use()
    except StaleAddressError as error:
        assert "STREAMSVM_NATIVE_EVENTS=0" in str(error)
    else:
        raise AssertionError("a wrong address was used")
"""


@needs_native_events
def test_in_debug_mode_each_call_compares_first():
    run(DEBUG, STREAMSVM_NATIVE_EVENTS="debug")


@needs_native_events
def test_a_target_whose_sizes_do_not_fit_is_not_bound(model):
    path, target = model.fast_path, linear_native._target_of(model, model.state)
    for wrong in (
        target._replace(labels=["a", "b", "c"]),
        target._replace(labels=["a"]),
        target._replace(calibration=np.zeros(2)),
        target._replace(state=target.state._replace(info=np.zeros((2, 14)))),
    ):
        assert not path.bind(wrong, model.solver.generation.advance()) and not path.is_open
    assert path.bind(target, model.solver.generation.advance()) and path.is_open
    # A generation that something has ended meanwhile.
    assert not path.bind(target, model.solver.generation.advance() - 1)
