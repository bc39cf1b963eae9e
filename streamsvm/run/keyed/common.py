"""The models that keys begin with: checked, and the same to the last bit in all workers."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamsvm.errors import KeyedStateError, ParameterError
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.conformal_sets import has_probabilities
from streamsvm.learners.incremental_regressor import IncrementalSVMRegressor
from streamsvm.model_files import container
from streamsvm.monitor.watched import Model
from streamsvm.run.adapters import adapter_of
from streamsvm.run.keyed.records import Generation

SEED = 0
"""The seed of learners that have none: a model that is learnt again must not draw anew."""

_LEARNERS = Learner, IncrementalSVMRegressor


class CommonModels:
    """The model that new keys begin with, and those that keys began with before, by digest."""

    def __init__(
        self,
        model: Model | str | Path,
        previous_models: Sequence[Model | str | Path],
        probabilities: bool,
    ) -> None:
        files = [_file_of(one, probabilities) for one in (model, *previous_models)]
        digests = [container.digest_of(file) for file in files]
        self._models = {
            digest: container.decoded(file, f"model {digest[:12]}")[0]
            for digest, file in zip(digests, files, strict=True)
        }
        self.digest = digests[0]
        """Of the model that new keys begin with."""
        self._kinds = [_kind_of(one) for one in self._models.values()]
        self.kind = self._kinds[0]

    def new(self, digest: str | None = None) -> Model:
        """Return a copy of a model; None: of the one that new keys begin with."""
        return copy.deepcopy(self._models[digest or self.digest])

    def check(self, of: Generation, name: str) -> None:
        """Refuse, by KeyedStateError, a key that began with a model that is not given."""
        if not of.parts and of.common not in self._models:
            raise KeyedStateError(
                f"a key began with a common model that is not given (its digest is "
                f"{of.common[:12]}..., given: "
                f"{', '.join(sorted(one[:12] for one in self._models))}): give it, too, as "
                "previous_models=[...], or use another consumer group to begin all keys anew"
            )
        if of.kind not in self._kinds:
            raise KeyedStateError(
                f"the state of the models named {name!r} has a {of.kind}, and given is "
                f"{' or '.join(self._kinds)}: give each of several models on a stream a name= of "
                "its own, or what keys began with, too, as previous_models=[...]"
            )


def _file_of(model: Model | str | Path, probabilities: bool) -> bytes:
    """Return a model as the content of a file; it may be the path of one."""
    if isinstance(model, (str, Path)):
        file = Path(model).read_bytes()
        own: Model = container.decoded(file, model)[0]
    else:
        file, own = None, model
    _check(own, probabilities)
    seeded = _seeded(own)
    return container.encoded(seeded) if file is None or seeded is not own else file


def _check(model: Model, probabilities: bool) -> None:
    last = container.steps_of(model)[-1]
    if not isinstance(last, _LEARNERS):
        raise ParameterError(
            f"{' '.join(repr(model).split()):.80} is no model for keys to begin with: use a "
            "learner of streamsvm with labels of one value, such as LASVMClassifier(), a pipeline "
            "that ends with one, or the path of a model file"
        )
    if adapter_of(model).changes_by_predicting:
        raise ParameterError(
            f"model: each prediction changes a {type(model).__name__}, and the log has those of "
            "learnt events only: give the learner that it is around"
        )
    if probabilities and not has_probabilities(last):
        raise ParameterError(f"probabilities=True: {type(last).__name__} has none; leave it out")
    container.check(model)


def _seeded(model: Model) -> Model:
    """Return a model whose parts have seeds, if they have learnt nothing and lack one."""
    steps = container.steps_of(model)
    changed = [_changed_parameters(step) for step in steps]
    if not any(changed):
        return model
    pairs = zip(steps, changed, strict=True)
    return container.model_of_steps([step.clone(more) if more else step for step, more in pairs])


def _changed_parameters(step: Any) -> dict[str, Any]:
    if getattr(step, "n_examples", 0):
        return {}  # its draws are in its state
    found: dict[str, Any] = {}
    if getattr(step, "seed", 0) is None:
        found["seed"] = SEED
    rule = getattr(step, "selection", None)
    if rule is not None and getattr(rule, "seed", 0) is None:
        found["selection"] = dataclasses.replace(rule, seed=SEED)
    return found


def _kind_of(model: Model) -> str:
    return " | ".join(type(step).__name__ for step in container.steps_of(model))
