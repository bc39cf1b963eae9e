"""A monitor's record as a table with the meaning of each number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from streamsvm.monitor.figures import ABOUT, NOT_OF_ALL, meaning_of, shown_of


def shown(value: Any) -> str:
    """Return a number as text; a dash for None and NaN.

    >>> from streamsvm.monitor.report import shown
    >>> shown(12345), shown(0.0123456), shown(None)
    ('12,345', '0.01235', '-')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:.4g}"


def panel(monitor: Any, values: Mapping[str, Any]) -> Table:
    """Return the table of a record of a monitor: name, value and meaning of what is shown."""
    table = Table(
        title=f"Tracking {type(monitor.learner).__name__}", title_justify="left", box=None
    )
    table.add_column("", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("meaning", overflow="fold")
    for name, value in shown_of(values, monitor.covers).items():
        meaning = meaning_of(name)
        if name == "certificate":
            reason = monitor.certificate_reason
            chance = f"with {monitor.confidence:.0%} probability"
            meaning = reason if value is None else f"{meaning} {chance}: {reason}"
        if name == "gap":
            meaning = (
                f"{meaning}, of {ABOUT[monitor.covers]}"
                if value is not None
                else NOT_OF_ALL.get(monitor.covers, "not measured yet")
            )
        table.add_row(name, shown(value), escape(meaning))
    return table
