"""The feeder of a model of rows."""

from __future__ import annotations

from typing import Any

from streamsvm.learners.active import ActiveLearner
from streamsvm.learners.compare import Compare
from streamsvm.learners.conformal_sets import ConformalSets
from streamsvm.learners.selective import Selective
from streamsvm.run.answers_feeder import AnswersFeeder
from streamsvm.run.asking_feeder import AskingFeeder
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.compare_feeder import CompareFeeder
from streamsvm.run.feeder import Feeder
from streamsvm.run.sets_feeder import SetsFeeder

_FEEDERS: dict[type, Any] = {
    ActiveLearner: AskingFeeder,
    Compare: CompareFeeder,
    ConformalSets: SetsFeeder,
    Selective: AnswersFeeder,
}


def row_feeder_of(model: Any, bad: BadEvents, positive: str | None, target: str | None) -> Feeder:
    """Return the feeder of a wrapper, or that of all other models; arguments as of `Feeder`."""
    found: Feeder = _FEEDERS.get(type(model), Feeder)(model, bad, positive, target)
    return found


def figures_of(model: Any) -> dict[str, dict[str, Any]]:
    """Return what reports have of wrappers, by field: of sets, of answers, of two models."""
    if isinstance(model, ConformalSets):
        return {"coverage": model.sets.figures()}
    if isinstance(model, Selective):
        return {"answers": model.answering.figures() | model.answering.counts}
    if isinstance(model, Compare):
        return {"comparison": model.comparison.figures() | {"record": model.record}}
    return {}
