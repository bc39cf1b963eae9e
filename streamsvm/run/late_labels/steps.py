"""What late labels ask of a run: steps, which `runner.carry_out` takes in their order."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from connectors.batch import Batch
from streamsvm.labels.label_column import LabelColumn
from streamsvm.run.late_labels.clock import Order


class Feed(NamedTuple):
    """Predict each row, then learn it: the labels are there."""

    batch: Batch
    labels: Sequence[Any]


class Predict(NamedTuple):
    """Predict rows without labels, and give what comes of it to `hold`.

    That is: the numbers of the rows that can be used, their predictions, and whose labels are
    waited for.
    """

    batch: Batch
    hold: Callable[[np.ndarray, list[Any], np.ndarray], None]


class Learn(NamedTuple):
    """Learn rows with labels that came later than what was `predicted` for them."""

    batch: Batch
    labels: Sequence[Any]
    predicted: Sequence[Any]
    are_answers: bool  # False: nobody gave the labels, they are the default


class LearnInOrder(NamedTuple):
    """Predict and learn events in an order; give what comes of those of the last batch to `hold`.

    Those of earlier batches were predicted earlier, as `given`. `hold` is given what was predicted
    for all events, object (events,); which of them can be used, and whose labels are waited for,
    bool (events,).
    """

    batches: list[Batch]
    labels: LabelColumn
    given: list[Any]
    order: Order
    hold: Callable[[np.ndarray, np.ndarray, np.ndarray], None]


class SetAside(NamedTuple):
    """Give a row of a batch to the bad events."""

    batch: Batch
    row: int
    kind: str
    reason: str


class GiveUp(NamedTuple):
    """Note that the labels of so many events that were predicted will not be learnt."""

    n: int


Steps = Iterator[Feed | Predict | Learn | LearnInOrder | SetAside | GiveUp]
