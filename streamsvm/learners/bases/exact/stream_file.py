"""Exact solutions of rows without labels in model files, with what is known of features."""

from __future__ import annotations

from streamsvm.features.missing import N_ROWS, are_possible
from streamsvm.features.schema import Schema
from streamsvm.learners.bases.exact.exact_stream import ExactStream
from streamsvm.model_files.json_values import LARGEST_COUNT, Content, Json
from streamsvm.models.exact.exact_file import read_solution, solution_as_file
from streamsvm.support.declaration import Field, NamedArrays, as_int


def as_file(learner: ExactStream) -> Content:
    """Return the solution of examples without labels, and what is known of features."""
    schema = learner.schema
    content, arrays = solution_as_file(learner.model, len(schema))
    content |= {"n_ignored": schema.n_ignored, "n_passed": learner.model.n_passed}
    return content, arrays | {"missing": schema.missing.statistics[:, : len(schema.names)]}


def read(learner: ExactStream, content: Json, arrays: NamedArrays) -> None:
    """Set what `as_file` returned; raise ValueError if it does not hold together."""
    names = learner.schema.names
    if len(names) > learner.max_features:
        raise ValueError("there are more features than max_features")
    learner.schema = Schema(names, learner.max_features, None, learner.missing)
    found = arrays.take("missing", Field((N_ROWS, len(names))), {})
    if not are_possible(found):
        raise ValueError("missing: the sums or counts of features contradict each other")
    learner.schema.missing.keep(found)
    learner.schema.n_ignored = as_int("n_ignored", content.get("n_ignored"), 0)
    learner.model.n_passed = as_int("n_passed", content.get("n_passed"), 0, LARGEST_COUNT)
    learner.model.problem = read_solution(learner.model, len(names), content, arrays)
