"""Checks of the parameters of linear learners, and the schedule of their steps."""

from __future__ import annotations

from streamsvm._parameter_checks import check_cost, check_number, check_positive, check_size
from streamsvm.errors import ParameterError
from streamsvm.losses import LOSSES
from streamsvm.solvers.linear.state import Schedule


def schedule_of(
    loss: str,
    l2: float,
    C: float | None,
    n_expected: int | None,
    t0: float | None,
    power: float,
    skip: int | str,
    averaged: bool | float | None,
    bias_rate: float,
) -> Schedule:
    """Return the schedule for the parameters of a linear learner, which are checked.

    They are those of `SVMSGDClassifier`, but `power` is a number. If `t0` is None, it is 1 in the
    schedule until it is chosen.
    """
    if loss not in LOSSES:
        names = ", ".join(map(repr, LOSSES))
        raise ParameterError(f"loss={loss!r}: use one of {names}")
    if check_number("power", power, 0.0) > 1.0:
        raise ParameterError(f"power={power!r}: use a number between 0 and 1")
    return Schedule(
        loss=LOSSES[loss],
        lam=_lambda(l2, C, n_expected),
        t0=1.0 if t0 is None else check_number("t0", t0, 1.0),
        power=float(power),
        skip=0.0 if skip == "auto" else check_number("skip", skip, 1.0),
        averaged=_least_share(averaged),
        choose=float(averaged is None),
        bias_rate=check_number("bias_rate", bias_rate, 0.0),
    )


def _lambda(l2: float, C: float | None, n_expected: int | None) -> float:
    """Return lambda: `l2`, or computed from `C`."""
    if C is None:
        return check_positive("l2", l2)
    n = check_size("n_expected", n_expected, most=2**63 - 1)
    if n is None:
        raise ParameterError(
            f"C={C!r}: the same C means less regularisation the longer the stream; "
            "give n_expected=, how many examples it is about, or l2="
        )
    return 1.0 / (check_cost(C) * n)


def _least_share(averaged: bool | float | None) -> float:
    """Return the smallest share of the last weights in the average; 0 without an average."""
    if averaged is None or isinstance(averaged, bool):
        return 0.0 if averaged is False else 1e-15
    return 3.0 / (check_number("averaged", averaged, 2.0) + 2.0)
