"""The models and recent examples of an `AdaptiveSVMClassifier` in model files."""

from __future__ import annotations

from typing import Any

from streamsvm.learners.bases.adaptive import members, repeated_labels
from streamsvm.learners.bases.adaptive.several_models import SeveralModels
from streamsvm.model_files import codec
from streamsvm.support.declaration import NamedArrays

_SHARED = ("features", "labels", "n_ignored")
"""What is the same in the learner and all of its models, and is written once."""


def _prefix(index: int) -> str:
    return f"model_{index}_"


def _content_of(learner: SeveralModels) -> codec.Content:
    arrays = learner.recent.as_arrays(len(learner.schema))
    contents = []
    for i, member in enumerate(learner.models):
        if member.state is not None:
            # It may have learnt nothing since the last feature came.
            member.make_room(len(learner.schema))
        content, own = codec.to_file(member)
        kept = {name: value for name, value in content.items() if name not in _SHARED}
        contents.append(kept | {"class": type(member).__name__})
        # The statistics of missing values belong to the features, which are shared.
        arrays |= {_prefix(i) + name: a for name, a in own.items() if name != "missing"}
    return {"models": contents}, arrays


def _read(learner: SeveralModels, content: dict[str, Any], arrays: NamedArrays) -> None:
    learner.recent.read(arrays, len(learner.schema), learner.targets.n_classes)
    contents = content.get("models")
    if not isinstance(contents, list) or len(contents) not in (0, 1, len(members.KINDS)):
        raise ValueError("models is no list of the learner's models")
    if bool(contents) != bool(learner.n_examples):
        raise ValueError("there are examples without models, or models without examples")
    expected = {"LASVMClassifier"} | (
        set() if learner.targets.has_one_margin else {"LaRankClassifier"}
    )
    shared = {name: content[name] for name in _SHARED if name in content}
    for i, own in enumerate(contents):
        if not isinstance(own, dict) or own.get("class") not in expected:
            raise ValueError(f"model {i} is none of {sorted(expected)}")
        member = codec.from_file(own | shared, arrays.taken_with(_prefix(i)))
        _check(learner, member)
        members.adopt(learner, member)
        learner.models.append(member)

    learner.offsets = repeated_labels.offsets_for(learner, learner.targets.labels)


def _check(learner: SeveralModels, member: Any) -> None:
    """Raise ValueError if a model from a file is none of this learner's."""
    if member.hashing != learner.hashing or member.max_features != learner.max_features:
        raise ValueError("a model takes other features than the learner")


IN_FILES: dict[str, Any] = {
    "more": _content_of,
    "read_more": _read,
    "older": {"last_label": False, "max_classes": None},  # there was no limit
}
"""What `register_learner` is told of the models."""
