"""The solver of a learner of label sequences, by the learner's parameters."""

from __future__ import annotations

from typing import Any

from streamsvm._parameter_checks import check_size
from streamsvm.errors import ParameterError
from streamsvm.structured.sequences.inference import Exact, Greedy, SequenceSolver
from streamsvm.structured.sequences.kernel_inference import KernelGreedy
from streamsvm.structured.sequences.model import Schedule

_MOST_ORDER = 32


def new_solver(
    method: int,
    inference: str,
    order: int | None,
    *,
    is_averaged: bool = False,
    steps: tuple[int, int] = (0, 0),
    limit: int | None = None,
    window: int | None = None,
    seed: int | None = 0,
    kernel: Any = None,
    cache_bytes: int = 0,
) -> SequenceSolver:
    """Return a solver; raise `ParameterError` if inference or order cannot be used.

    `steps` are those of PROCESSOLD for each example, and of OPTIMIZE after each of these; `limit`
    is the most support patterns, None for any number. For the others see `SequenceSolver`.
    """
    if inference not in ("greedy", "exact"):
        raise ParameterError(f"inference={inference!r}: use 'greedy' or 'exact'")
    is_greedy = inference == "greedy"
    own = check_size("order", order, 0, _MOST_ORDER if is_greedy else 1)
    default = 2 if is_greedy else 1
    schedule = Schedule(method, default if own is None else own, *steps, limit or 2**62)
    if kernel is not None:
        return KernelGreedy(kernel, cache_bytes, schedule, window, seed)
    return (Greedy if is_greedy else Exact)(schedule, is_averaged, window, seed)
