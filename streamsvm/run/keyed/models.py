"""Models by key, for any stream engine that keeps a state for each key.

Those used last are in memory; the state always has all of each.
"""

from __future__ import annotations

import copy
import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamsvm.errors import BadEventError, KeyedStateError, ParameterError, StreamSVMError
from streamsvm.learners.bases.learner import Learner
from streamsvm.model_files import container
from streamsvm.run import parts
from streamsvm.run.keyed import history as histories
from streamsvm.run.keyed import records
from streamsvm.run.keyed.history import History, Snapshots
from streamsvm.run.keyed.records import KeyState

LEAST_LOG_BYTES = 16 * 1024
"""The log of a small model may be so long: 200 events, which take milliseconds to learn again."""

_WEIGHED_EVERY = 64  # events: looking how large a model is takes as long as learning one
_PLAIN = {float, int, str, bool, type(None)}


class Answer(NamedTuple):
    """What became of an event."""

    prediction: Any  # before it was learnt; None: not known
    probabilities: dict[Any, float] | None  # if they are asked for
    learnt: bool  # now
    repeated: bool  # it was learnt before: this is what was predicted then, if it is kept


class _Held:
    """A model in memory."""

    def __init__(self, history: History, model: Any) -> None:
        self.history, self.model, self.bytes = history, model, _bytes_of(model)


class KeyedModels:
    """A model for each key: `take` gives an event to that of its key.

    See `streamsvm.run.keyed.quix.ModelPerKey` for the parameters. Not thread-safe.
    """

    def __init__(
        self,
        model: Any,
        earlier: Sequence[Any] = (),
        probabilities: bool = False,
        max_models: int = 1000,
        max_bytes: int = 2**30,
        snapshots: str | Path | None = None,
    ) -> None:
        for name, value in (("max_models", max_models), ("max_bytes", max_bytes)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ParameterError(f"{name}={value!r}: use a whole number of at least 1")
        files = [_file_of(one) for one in (model, *earlier)]
        common = {container.digest_of(file): file for file in files}
        self._common_digest = container.digest_of(files[0])
        self._common = {digest: _model_of(file, digest) for digest, file in common.items()}
        self._check_predicts(self._common[self._common_digest], probabilities)
        folder = None if snapshots is None else Path(snapshots)
        if folder is not None:
            histories.check_folder(folder)
        self._snapshots = Snapshots(common, folder)
        self._digest_of_file = {id(file): digest for digest, file in common.items()}
        self._probabilities = probabilities
        self._max_models, self._max_bytes = max_models, max_bytes
        self._held: OrderedDict[Any, _Held] = OrderedDict()
        self.bytes = 0
        """Of the models in memory."""
        self.n_restored = 0
        """How often a model was made from its state."""

    def __len__(self) -> int:
        """How many models are in memory."""
        return len(self._held)

    @staticmethod
    def _check_predicts(model: Any, probabilities: bool) -> None:
        last = container.steps_of(model)[-1]
        wanted = ["learn_one", "predict_one"] + ["predict_proba_one"] * probabilities
        if lacking := [name for name in wanted if not hasattr(last, name)]:
            raise ParameterError(
                f"model: a {type(last).__name__} has no {lacking[0]}: use a learner of events, or "
                "a pipeline that ends with one"
            )

    def take(
        self, key: Any, source: str, offset: int, x: dict[str, Any], y: Any, state: KeyState
    ) -> Answer:
        """Predict an event by the model of its key; learn it, if it has a label (not None).

        `source` is the topic, `offset` the event's place in it, above those of earlier events of
        the key. BadEventError: the event cannot be used, the model has not changed.
        """
        held = self._held_for(key, source, state)
        if y is None:
            model = self._new_model() if held is None else held.model
            return Answer(*self._predicted(model, x), learnt=False, repeated=False)
        if held is not None and offset <= held.history.offset:
            answer = held.history.answer(state, offset) or [None, None]
            return Answer(*_as_answered(answer), learnt=False, repeated=True)
        return self._learn(key, source, offset, _plain(x), y, state, held)

    def model_of(self, key: Any, source: str, state: KeyState) -> Any:
        """Return the model of a key as it is in the state, a copy; None: it has learnt nothing."""
        held = self._held_for(key, source, state)
        return None if held is None else copy.deepcopy(held.model)

    def _learn(
        self,
        key: Any,
        source: str,
        offset: int,
        x: dict[str, Any],
        y: Any,
        state: KeyState,
        held: _Held | None,
    ) -> Answer:
        is_new = held is None
        model = self._new_model() if held is None else held.model
        y = _plain_value("label", y)
        last = container.steps_of(model)[-1]
        if isinstance(last, Learner) and not parts.can_be_label(y, last.classes, last.most_classes):
            raise BadEventError(parts.refused_label(last, y)[1])
        predicted = self._predicted(model, x)
        try:
            model.learn_one(x, y)
            if held is None:
                begun = histories.begin(state, source, self._common_digest, list(x))
                held = _Held(begun, model)
            answer = [predicted[0], predicted[1] and list(predicted[1].items())]
            names = held.history.generation.names
            entry = records.entry_of(offset, x, y, answer, names)
            held.history.append(state, entry, offset)
            size = held.history.generation.n_bytes
            if held.history.log_bytes > max(size, LEAST_LOG_BYTES):
                self._write_snapshot(key, source, held, state)
        except BaseException:
            # A step may have learnt before another one failed; what the state has is right.
            self._drop(key)
            raise
        if is_new:
            self._hold(key, held)
        elif held.history.n % _WEIGHED_EVERY == 0:
            self._weigh(held)
        return Answer(*predicted, learnt=True, repeated=False)

    def _write_snapshot(self, key: Any, source: str, held: _Held, state: KeyState) -> None:
        name = hashlib.sha256(repr((source, key)).encode()).hexdigest()[:24]
        file = container.encoded(held.model)
        held.history = histories.snapshot(held.history, state, self._snapshots, file, name)

    def _predicted(self, model: Any, x: dict[str, Any]) -> tuple[Any, dict[Any, float] | None]:
        label = _plain_value("prediction", model.predict_one(x))
        if not self._probabilities:
            return label, None
        found = model.predict_proba_one(x)
        return label, {_plain_value("label", y): float(p) for y, p in found.items()}

    # Models in memory

    def _held_for(self, key: Any, source: str, state: KeyState) -> _Held | None:
        """Return the model of a key; None: it has learnt nothing yet."""
        held = self._held.get(key)
        if held is None or not held.history.is_current(state):
            self._drop(key)
            found = histories.restore(state, self._snapshots, self._learnt_again)
            if found is None:
                return None
            self.n_restored += 1
            self._hold(key, held := _Held(*found))
        self._held.move_to_end(key)
        if held.history.generation.source != source:
            raise KeyedStateError(
                f"the model of key {key!r} has learnt from topic "
                f"{held.history.generation.source!r}, and now an event comes from {source!r}: "
                "offsets of two topics cannot be compared; use one topic, or a consumer group each"
            )
        return held

    def _hold(self, key: Any, held: _Held) -> None:
        self._held[key] = held
        self.bytes += held.bytes
        self._evict()

    def _weigh(self, held: _Held) -> None:
        now = _bytes_of(held.model)
        self.bytes += now - held.bytes
        held.bytes = now
        self._evict()

    def _evict(self) -> None:
        """Drop the models used longest ago, but never the one in use."""
        while len(self._held) > 1 and (
            len(self._held) > self._max_models or self.bytes > self._max_bytes
        ):
            self.bytes -= self._held.popitem(last=False)[1].bytes

    def _drop(self, key: Any) -> None:
        if (held := self._held.pop(key, None)) is not None:
            self.bytes -= held.bytes

    def _new_model(self) -> Any:
        return copy.deepcopy(self._common[self._common_digest])

    def _learnt_again(self, file: bytes, events: Iterator[Any]) -> Any:
        digest = self._digest_of_file.get(id(file))
        if digest is None:
            model = container.decoded(file, "the snapshot of a key")[0]
        else:
            model = copy.deepcopy(self._common[digest])
        for _, x, y, _ in events:
            model.learn_one(x, y)
        return model


def _file_of(model: Any) -> bytes:
    """Return a model as the content of a file; it may be the path of one."""
    if isinstance(model, (str, Path)):
        return Path(model).read_bytes()
    return container.encoded(model)


def _model_of(file: bytes, digest: str) -> Any:
    return container.decoded(file, f"model {digest[:12]}")[0]


def _bytes_of(model: Any) -> int:
    return sum(getattr(step, "memory_usage", 0) for step in container.steps_of(model))


def _plain(x: dict[Any, Any]) -> dict[str, Any]:
    """Return an event with values that JSON holds without loss; BadEventError: there are others."""
    if all(type(value) in _PLAIN for value in x.values()) and all(type(n) is str for n in x):
        return x
    for name in x:
        if not isinstance(name, str):
            raise BadEventError(
                f"the feature name {name!r:.100} is a {type(name).__name__}: use text"
            )
    return {str(name): _plain_value(f"feature {name!r}", value) for name, value in x.items()}


def _plain_value(what: str, value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    value = value.item() if isinstance(value, np.generic) else value
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    raise BadEventError(
        f"the {what} is a {type(value).__name__}: a log holds numbers, texts and booleans"
    )


def _as_answered(answer: list[Any]) -> tuple[Any, dict[Any, float] | None]:
    prediction, probabilities = answer
    return prediction, None if probabilities is None else {y: p for y, p in probabilities}


def is_about_event(error: Exception) -> bool:
    """Tell whether an error is about the event, and not about the set-up or the machine."""
    return isinstance(error, BadEventError) or not isinstance(
        error, (StreamSVMError, MemoryError, OSError)
    )
