"""Solvers by the type of their state: what compiled code calls for one event.

A solver makes itself known once, at the end of the file in which it learns events. Compiled code
chooses it by the type of the state, when it is compiled itself.
"""

from __future__ import annotations

from typing import Any

from streamsvm._compile import add_source_of, chosen_by

USES = "solvers/*/*.py"
"""Files whose functions are called from here: an edit of one recompiles what calls them."""

_learn: dict[Any, Any] = {}
_margins: dict[Any, Any] = {}

learn_event: Any = chosen_by(0, _learn, name="learn_event of a registered solver")
"""learn_event(state, kernel, schedule, spare, x, is_last, y, box, weight, numbers, margins):
learn one row.

Parameters
----------
state, kernel, schedule
    What the solver works with.
spare
    A store of one row that may be overwritten.
x
    One row: float32 (1, d), finite, or `SparseRows`.
is_last
    Whether it is the row that `margins_of_event` had last.
y, box, weight
    float64 (1,): +1 or -1, or the class if there are several outputs; C_i; the example weight.
numbers
    int64 (at least 1,): the number of the example.
margins
    float64 (1, outputs), written: from before the row was learnt.

Returns
-------
1, or 0 if nothing changed: the state is full, or the kernel cannot take the row.
"""

margins_of_event: Any = chosen_by(0, _margins, name="margins_of_event of a registered solver")
"""margins_of_event(state, kernel, schedule, x, out): write the margins of one row.

`out` is float64 (1, outputs). The kernel values of the row may stay in the scratch of the state,
where `learn_event` finds them.
"""


def register_solver(state_type: type, learn: Any, margins: Any) -> None:
    """Make a solver known by the type of its state.

    Parameters
    ----------
    state_type
        A NamedTuple of arrays.
    learn, margins
        Compiled functions with the arguments of `learn_event` and of `margins_of_event`.

    """
    _learn[state_type], _margins[state_type] = learn, margins
    for function in (learn, margins):
        add_source_of(function)
