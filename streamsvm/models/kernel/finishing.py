"""The loops of `finish`: steps on the examples kept, then rows of the reserve, to the optimum."""

from __future__ import annotations

import logging
import math
import operator
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm._compiling import working_time
from streamsvm._parameter_checks import check_number
from streamsvm.models.kernel import race
from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.models.kernel.kernel_solver import ReservingSolver, reserving
from streamsvm.models.kernel.revisits import Revisits

_log = logging.getLogger(__name__)

FINISHING_STEPS, FINISHING_STEPS_EACH = 10_000_000, 100
"""`finish` ends after so many steps, or so many for each example kept, whichever is more."""

_LEAST_STEPS = 100
"""A call counts as so many steps at least: it looks at all examples, even if it makes fewer."""

_LOOK_EVERY = 20_000
"""Number of steps after which the error is compared with that of rounding."""

_ROUNDING = 2.0**-46
"""Error of a gradient by rounding, in the largest value that f can have: some 64 last digits."""

GROWTH = 1e-9
"""`finish` ends when the dual grows by a smaller share of itself in a round."""

ROWS_A_SECOND, LEAST_SECONDS = 1000, 1.0
"""`finish` takes a second at most for so many examples kept and each class, and so many at least,
unless asked for more."""

_MOST_LOOKS = 1000
"""`finish` looks at the reserve so often at most; a few times are enough but for rounding."""


class Asked:
    """How a model is to finish, and what that may take: `seconds`, and `calls` of its steps.

    Without seconds it depends on the rows. `alone` calls a function that no other call on the model
    interrupts; between two calls, others may come.
    """

    def __init__(
        self,
        seconds: float | None,
        progress: Callable[[float, int], None] | None = None,
        alone: Callable[[Callable[[], object]], Any] = operator.call,
        calls: float = math.inf,
    ) -> None:
        self.seconds = None if seconds is None else check_number("seconds", seconds, 0)
        self.progress, self.alone, self.calls = progress, alone, calls
        self._began, self._has_said = _clocks(), False

    def exceeded(self, n_kept: int, n_classes: int, made: int) -> str | None:
        """Return why no further steps may be made, after so many on the rows kept; or None."""
        by_rows = max(LEAST_SECONDS, n_kept * n_classes / ROWS_A_SECOND)
        seconds = by_rows if self.seconds is None else self.seconds
        if made >= max(FINISHING_STEPS, FINISHING_STEPS_EACH * n_kept) or self.calls <= 0:
            return f"{made:,} steps were made"
        # The smaller one: other processes, threads and compiling do not count.
        if min(now - began for now, began in zip(_clocks(), self._began, strict=True)) > seconds:
            return f"{seconds:.3g} s have passed; finish(seconds={4.0 * seconds:.3g}) goes further"
        return None

    def ended(self, why: str, error: float, gap: float) -> None:
        """Say once in a call of `finish` that steps end before the optimum, and what is left."""
        if not self._has_said:
            self._has_said = True
            _log.warning(
                "finish ended before the optimum, with an error of %.3g and a gap of %.3g on the "
                "examples kept: %s; larger tau, smaller C and weights, or scaled features help",
                error,
                gap,
                why,
            )


def _clocks() -> tuple[float, float]:
    return working_time(), time.thread_time()


def improve(model: KernelModel, some: Callable[[], tuple[bool, float, int]], asked: Asked) -> bool:
    """Improve the examples kept up to their optimum; return whether that was as far as it goes.

    If they do not reach it, the log says so. `some` makes some steps, and returns whether it is
    done, the largest error left, and the number of steps; 0 if none changes a coefficient in double
    precision.
    Between two calls other threads can predict, Ctrl-C can interrupt, and `progress` gets (error,
    number of support vectors).
    """

    def facts() -> tuple[bool, float, int, int, float]:
        return *some(), len(model.kept_numbers()), model.dual

    made = stepped = of_round = 0
    at_round = model.dual
    while model.state is not None:
        is_done, error, steps, n_kept, dual = asked.alone(facts)
        if is_done:
            return True
        before, made, stepped = made, made + max(steps, _LEAST_STEPS), stepped + steps
        asked.calls -= 1
        why = asked.exceeded(n_kept, model.n_classes, made)
        has_grown = True
        # In a round of a step for each example kept.
        if stepped - of_round >= n_kept:
            has_grown = dual - at_round > GROWTH * abs(dual)
            at_round, of_round = dual, stepped
        if not has_grown:
            why = f"the dual grew by less than {GROWTH:g} of itself"
        looks = made // _LOOK_EVERY > before // _LOOK_EVERY
        if steps == 0 or (looks and error <= asked.alone(lambda: _rounding(model))):
            why = "what is left is rounding"
        if why is not None:
            asked.ended(why, error, asked.alone(model.duality_gap))
            # Further rows of the reserve may let the dual grow again.
            return not has_grown
        if asked.progress is not None:
            asked.progress(error, model.solver.n_support_vectors)
    return True


def _rounding(model: KernelModel) -> float:
    """Return the error that rounding alone leaves in gradients: steps on it never end."""
    coefficients = model.expansion()[1]
    largest = model.state.diagonal[: len(coefficients)].max(initial=0.0)
    return _ROUNDING * float(largest) * float(np.abs(coefficients).sum())


def finish(model: KernelModel, asked: Asked, share: float = 0.0) -> None:
    """Lead a model to the optimum over the examples kept and those of its reserve.

    Rows of the reserve that violate optimality are learnt, and the model is improved again, until
    none does. Between two calls others may learn: their examples are looked at when the model
    finishes again. With a `share`, of the dual, or C if that is more, it ends when the gap over the
    examples kept is below it, and what the reserve adds to the gap.
    """
    solver: ReservingSolver | None = None
    revisits: Revisits | None = None

    def allowed() -> float:
        return max(model.C, share * model.dual) if share > 0.0 else 0.0

    def some() -> tuple[bool, float, int]:
        return reserving(model.solver).improve_some(model.n_features, allowed())

    def look(is_first: bool) -> bool:
        """Learn rows that violate optimality; return whether that changed the model."""
        nonlocal solver, revisits
        if is_first:
            race.end(model)
        if revisits is None or model.solver is not solver:
            # Now, or since another thread has changed the kernel, the scale, or the classes.
            solver = reserving(model.solver)
            revisits = solver.revisits(model)
        return (revisits.comes_first or not is_first) and bool(revisits.learn_violating(allowed()))

    asked.alone(lambda: look(True))
    for _ in range(_MOST_LOOKS):
        if not (improve(model, some, asked) and asked.alone(lambda: look(False))):
            return
    _log.warning("finish ended after %d looks at the reserve", _MOST_LOOKS)
