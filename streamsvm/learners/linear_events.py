"""The short way of one dense event of two classes to the weights and back.

An array costs 50 nanoseconds on its way from Python into compiled code, an object that holds arrays
ten times that, a whole number 20: so that compiled code is told where a table of addresses is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import address_of, array_at, compiled
from streamsvm.learners.calibration import update_one
from streamsvm.solvers import sgd, sgdqn
from streamsvm.solvers.linear_state import N_INFO, LinearState, Schedule, margin_of


@compiled
def _held(table):  # type: ignore[no-untyped-def]
    """Return the row, the state and the numbers of a table, int64 (6,).

    It has the addresses of the row, of weights and info, of the schedule, of the calibration, and
    of the numbers, float64 (4,): features, parts and capacity of the weights, and 0 for SGD, 1 for
    SGD-QN, 2 for SGD-QN with the mean of inverses.
    """
    numbers = array_at(table[5], (4,), np.float64)
    d, parts, capacity = np.int64(numbers[0]), np.int64(numbers[1]), np.int64(numbers[2])
    row = array_at(table[0], (1, d), np.float32)
    weights = array_at(table[1], (1, parts, capacity), np.float64)
    info = array_at(table[2], (1, N_INFO), np.float64)
    return row, LinearState(weights, info), numbers


@compiled
def _schedule(table):  # type: ignore[no-untyped-def]
    s = array_at(table[3], (8,), np.float64)
    return Schedule(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])


@compiled
def margin(address):  # type: ignore[no-untyped-def]
    """Return the margin of the event in the row; NaN if a value is not finite."""
    table = array_at(address, (6,), np.int64)
    row, state, _ = _held(table)
    f = margin_of(state, row, 0, 0, _schedule(table))
    return f if np.isfinite(f) else np.nan


@compiled
def learn(address, y, weight):  # type: ignore[no-untyped-def]
    """Learn the event in the row, with sign y; False, and nothing changed, if it is not finite.

    Parameters
    ----------
    address
        Of a table.
    y, weight
        +1 or -1; the weight of the example.

    """
    table = array_at(address, (6,), np.int64)
    row, state, numbers = _held(table)
    for c in range(row.shape[1]):
        if not np.isfinite(row[0, c]):
            return False
    schedule = _schedule(table)
    if numbers[3] == 0.0:
        f = sgd.learn_row(state, row, 0, 0, y, weight, schedule)
    else:
        f = sgdqn.learn_row(state, row, 0, 0, y, weight, schedule, numbers[3] == 2.0)
    update_one(array_at(table[4], (5,), np.float64), f, y)
    return True


GIVE_UP: Any = object()
"""In the place of a label: the event must go the long way."""


class ShortWay(NamedTuple):
    """Functions that predict and learn an event, or give up: it must go the long way then."""

    predict: Callable[[Any], Any]
    """The label of an event, or `GIVE_UP`."""
    learn: Callable[[Any, Any], bool]
    """Learn an event and its label; False, and nothing changed, to give up."""
    close: Callable[[], None]
    """Give up from now on; called with the lock."""
    arrays: tuple[np.ndarray, ...] = ()
    """What the addresses are of."""


NO_WAY = ShortWay(lambda x: GIVE_UP, lambda x, y: False, lambda: None)
"""Gives up."""


def short_way(
    names: list[Any],
    state: LinearState,
    schedule: Schedule,
    kind: float,
    calibration: np.ndarray,
    sides: dict[Any, tuple[float, float]],
    lock: Any,
) -> ShortWay:
    """Return the short way to a state.

    Closures, since each attribute of an object would take as long as eight features, and so would
    ``with lock``.

    Parameters
    ----------
    names
        The features, at least 2.
    state, schedule, kind, calibration
        See `learn`.
    sides
        Sign and weight of both labels.
    lock
        Held while an event is predicted or learnt.

    """
    d, get = len(names), itemgetter(*names)
    pack = struct.Struct(f"{d}f").pack_into
    row = np.zeros((1, d), np.float32)
    buffer: Any = memoryview(row.data).cast("B")
    numbers = np.array([d, *state.weights.shape[1:], kind])
    arrays = (row, *state, np.array(schedule), calibration, numbers)
    table = np.array([address_of(array) for array in arrays], np.int64)
    address = address_of(table)
    negative, positive = sorted(sides, key=lambda label: sides[label][0])
    acquire, release, is_open = lock.acquire, lock.release, True

    def predict_shortly(x: Any) -> Any:
        acquire()
        try:
            if len(x) != d:
                return GIVE_UP
            pack(buffer, 0, *get(x))
            f = margin(address)
        except _REFUSED:
            return GIVE_UP
        finally:
            release()
        # NaN is not above or below anything.
        return positive if f > 0.0 else negative if f <= 0.0 else GIVE_UP

    def learn_shortly(x: Any, y: Any) -> bool:
        acquire()
        try:
            sign, weight = sides[y]
            if not is_open or len(x) != d:
                return False
            pack(buffer, 0, *get(x))
            return learn(address, sign, weight)  # type: ignore[no-any-return]
        except _REFUSED:
            return False
        finally:
            release()

    def close() -> None:
        nonlocal is_open
        is_open = False

    return ShortWay(predict_shortly, learn_shortly, close, (*arrays, table))


_REFUSED = (KeyError, struct.error, TypeError, OverflowError)
