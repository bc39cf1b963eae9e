"""The options for labels that come later than their events."""

from __future__ import annotations

import argparse

from streamsvm.cli.parser import Group
from streamsvm.cli.values import label_of, number, whole
from streamsvm.errors import ParameterError
from streamsvm.run.late_labels import LateLabels


def add_late_options(group: Group) -> None:
    """Add the options for late labels, and for events whose labels never come."""
    group.add_argument(
        "--label-delay",
        type=number,
        metavar="N",
        help="let each label come so many examples later (seconds, with --label-moment): simulated",
    )
    group.add_argument(
        "--label-moment",
        metavar="NAME",
        help="what the delay is counted in: 'timestamp', or a feature that is a time",
    )
    group.add_argument(
        "--hold-most",
        type=whole(1),
        default=100_000,
        metavar="N",
        help="events held for their labels; the oldest are given up beyond; default 100000",
    )
    group.add_argument(
        "--patience", type=whole(1), metavar="N", help="give up an event after so many further ones"
    )
    group.add_argument(
        "--default-label",
        metavar="LABEL",
        help="learn events that are given up with this label (JSON: false, 0, or a text)",
    )


def late_labels_of(options: argparse.Namespace, by_key: bool = False) -> LateLabels | None:
    """Return the buffer of events that wait for labels; None: each event has its label.

    `by_key`: labels come from a topic of their own.
    """
    if options.label_delay is None and not by_key:
        if options.patience is not None or options.default_label is not None:
            raise ParameterError(
                "--patience and --default-label are about labels that come late: give "
                "--label-delay, or where labels come from (consume --labels-topic)"
            )
        if options.label_moment is not None:
            raise ParameterError("--label-moment needs --label-delay")
        return None
    default = options.default_label
    if default is not None:
        positive = options.positive
        default = label_of(default) if positive is None else default == positive
    return LateLabels(
        options.label_delay,
        options.label_moment,
        most=options.hold_most,
        patience=options.patience,
        default=default,
    )
