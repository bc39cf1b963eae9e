"""References to states in compiled code, and functions that only compiled code calls."""

import ast
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import TypingError

import streamsvm
from streamsvm import _compile
from streamsvm._compile import borrowed, chosen_by, compiled, compiled_inner, compiled_within

pytestmark = pytest.mark.skipif(not _compile.JIT, reason="compiled code is switched off")


class Inner(NamedTuple):
    values: np.ndarray
    n: np.ndarray


class Outer(NamedTuple):
    inner: Inner
    matrix: np.ndarray
    factor: float


class Other(NamedTuple):
    values: np.ndarray


def outer():
    return Outer(Inner(np.arange(4.0), np.array([4])), np.ones((2, 3), np.float32), 2.5)


@compiled_inner
def total(inner):
    out = 0.0
    for i in range(inner.n[0]):
        out += inner.values[i]
    return out


@compiled_within
def write(state):
    state.inner.values[0] = 7.0
    state.matrix[1, 2] = state.factor
    return total(state.inner) + state.matrix.shape[1]


@compiled
def through_references(state):
    state = borrowed(state)
    return write(state)


@compiled
def through_a_tuple(state, other):
    state, x, other = borrowed((state, other.values, other))
    return write(state) + x[0] + other.values[1]


@compiled
def by_value(state):
    return write(state)


def test_attributes_are_those_of_the_tuple():
    state, same = outer(), outer()
    assert through_references(state) == by_value(same) == 7.0 + 1 + 2 + 3 + 3
    for one, two in zip((*state.inner, *state[1:]), (*same.inner, *same[1:]), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_tuple_gives_references_to_its_states_and_its_arrays():
    assert through_a_tuple(outer(), Other(np.array([0.5, 0.25]))) == 16.75


@compiled_inner
def _of_inner(state):
    return 1


@compiled_inner
def _of_outer(state):
    return 2


kind_of = chosen_by(0, {Inner: _of_inner, Outer: _of_outer})


@compiled
def kinds(state):
    state = borrowed(state)
    return kind_of(state), kind_of(state.inner)


def test_functions_are_chosen_by_the_state_that_a_reference_is_to():
    assert kinds(outer()) == (2, 1)


@compiled_inner
def _take(state):
    return state


@compiled
def sum_of_passed_on(state):
    state = borrowed(state)
    return total(_take(state).inner)


def test_a_reference_that_was_given_may_be_returned():
    assert sum_of_passed_on(outer()) == 6.0


@compiled_inner
def _returns_its_own(state):
    return borrowed(state)


@compiled
def uses_one_that_ended(state):
    return total(_returns_its_own(state).inner)


@compiled
def returns_one_to_python(state):
    return borrowed(state)


@compiled
def returns_an_array(state):
    return borrowed(state).inner.values[1:]


@pytest.mark.parametrize("function", [uses_one_that_ended, returns_one_to_python, returns_an_array])
def test_nothing_outlives_the_call_that_made_a_reference(function):
    with pytest.raises(TypingError, match="makes references, and returns"):
        function(outer())


def test_python_cannot_call_what_only_compiled_code_calls(monkeypatch):
    monkeypatch.undo()
    function = type(total).__mro__[0]
    assert function.only_inner
    namespace = {"__name__": "elsewhere", "total": total, "state": outer().inner}
    with pytest.raises(TypeError, match="compiled code"):
        exec("total(state)", namespace)


def test_references_are_not_made_in_loops():
    """Loads by a reference may leave a loop, past the place where the state is written."""
    seen = 0
    for path in Path(streamsvm.__file__).parent.rglob("*.py"):
        for loop in ast.walk(ast.parse(path.read_text())):
            if isinstance(loop, ast.For | ast.While):
                names = [n.id for n in ast.walk(loop) if isinstance(n, ast.Name)]
                assert "borrowed" not in names, (path, loop.lineno)
                seen += 1
    assert seen > 100
