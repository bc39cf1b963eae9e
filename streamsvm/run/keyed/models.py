"""Models by key, for any stream engine that keeps a state for each key.

Those used last are in memory; the state always has all of each.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from streamsvm.errors import (
    BadEventError,
    KeyedStateError,
    ModelFileError,
    NewerModelFileError,
    ParameterError,
    StreamSVMError,
)
from streamsvm.model_files import container
from streamsvm.model_files.json_values import as_json
from streamsvm.monitor.watched import Model
from streamsvm.run import parts
from streamsvm.run.keyed import key_log, records
from streamsvm.run.keyed.common import CommonModels
from streamsvm.run.keyed.key_log import KeyLog
from streamsvm.run.keyed.records import Entry, Generation, KeyState, Position

LEAST_LOG_BYTES = 16 * 1024
"""The log of a small model may be so long: 200 events, which are learnt again to restore it."""
LEAST_LOG_BYTES_OF_KERNELS = 4 * 1024
"""The same with a kernel: its first events cost most, for widths are tried on them, also again."""

_WEIGHED_EVERY = 64  # events: looking how large a model is takes as long as learning one
NOT_OF_EVENT = StreamSVMError, MemoryError, OSError
"""Errors that are no fault of an event, or BadEventError, which says so itself."""
_OF_MACHINE = NewerModelFileError, MemoryError
_BESIDE_ARRAYS = 200 * 1024  # of a small model: what reads its events, Python's objects
_PLAIN = {float, int, str, bool, type(None)}

Predicted = tuple[Any, dict[Any, float] | None]


class Answer(NamedTuple):
    """What became of an event."""

    prediction: Any  # before it was learnt; None: not known
    probabilities: dict[Any, float] | None  # if they are asked for
    learnt: bool  # now
    repeated: bool  # it was learnt before: this is what was predicted then, if it is kept


class _Held:
    """A model in memory."""

    def __init__(self, log: KeyLog, model: Model) -> None:
        self.log, self.model, self.bytes = log, model, 0
        has_kernel = hasattr(container.steps_of(model)[-1], "kernel_")
        self.least_log = LEAST_LOG_BYTES_OF_KERNELS if has_kernel else LEAST_LOG_BYTES


class KeyedModels:
    """A model for each key: `predict_then_learn` gives an event to that of its key.

    See `streamsvm.run.keyed.ModelPerKey` for the parameters; `made_by`, JSON values, is what
    must be the same in all workers that use the models of a name. Not thread-safe.
    """

    def __init__(
        self,
        model: Model | str | Path,
        previous_models: Sequence[Model | str | Path] = (),
        probabilities: bool = False,
        max_models: int = 1000,
        max_bytes: int = 2**30,
        name: str = "model",
        made_by: Mapping[str, Any] | None = None,
    ) -> None:
        for what, value in (("max_models", max_models), ("max_bytes", max_bytes)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ParameterError(f"{what}={value!r}: use a whole number of at least 1")
        if not isinstance(name, str):
            raise ParameterError(f"name={name!r}: use text")
        if not isinstance(probabilities, bool):
            raise ParameterError(f"probabilities={probabilities!r:.80}: use True or False")
        if isinstance(previous_models, str) or not isinstance(previous_models, Sequence):
            what = f"previous_models={previous_models!r:.80}"
            raise ParameterError(f"{what}: use a list of models, or of paths of model files")
        self._common = CommonModels(model, previous_models, probabilities)
        self._name, self._slots = name, (f"{name}/a", f"{name}/b")
        self._made_by = dict(made_by or {})
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

    def predict_then_learn(
        self,
        key: str | bytes,
        source: str,
        position: Position,
        x: dict[str, Any],
        y: Any,
        state: KeyState,
    ) -> Answer:
        """Predict an event by the model of its key; learn it, if it has a label (not None).

        `source` is the topic, `position` the event's place in it, above those of earlier events of
        the key. BadEventError: the event cannot be used, the model has not changed. KeyedStateError
        and others: it is not the event that is at fault.
        """
        held = self._held_for(key, source, state)
        if held is not None and y is not None and position <= held.log.position:
            return _repeated(key, held.log, state, position)
        model = self._common.new() if held is None else held.model
        try:
            predicted = self._predicted(model, x)
            if y is None:
                return Answer(*predicted, learnt=False, repeated=False)
            names, entry = self._learn(key, model, position, x, y, predicted, held)
        except NOT_OF_EVENT:
            raise
        except Exception as error:
            raise BadEventError(f"{type(error).__name__}: {error}") from error
        try:
            if held is None:
                common = self._common
                about = {"common": common.digest, "kind": common.kind, "made_by": self._made_by}
                log = key_log.begin(state, self._slots, source=source, names=names, **about)
                self._hold(key, held := _Held(log, model))
            held.log.append(state, entry, position)
            if held.log.log_bytes > max(held.log.generation.n_bytes, held.least_log):
                self._write_snapshot(held, state)
            if held.log.n % _WEIGHED_EVERY == 0:
                self._hold(key, held)
        except BaseException as error:
            self._drop(key)
            _raise_of_state(key, error)
        return Answer(*predicted, learnt=True, repeated=False)

    def model_of(self, key: str | bytes, source: str, state: KeyState) -> Model | None:
        """Return the model of a key as it is in the state, a copy; None: it has learnt nothing."""
        held = self._held_for(key, source, state)
        return None if held is None else copy.deepcopy(held.model)

    def _learn(
        self,
        key: str | bytes,
        model: Model,
        position: Position,
        x: dict[str, Any],
        y: Any,
        predicted: Predicted,
        held: _Held | None,
    ) -> tuple[list[str], bytes]:
        """Learn an event; return the names of the log, and the entry that is to be written."""
        x, y = _plain(x), _plain_value("label", y)
        parts.check_label(model, y)
        answer = [predicted[0], predicted[1] and list(predicted[1].items())]
        names = records.names_of(x) if held is None else held.log.generation.names
        entry = Entry(position, x, y, answer).written(names)
        if len(entry) > records.MOST_ENTRY_BYTES:
            raise BadEventError(
                f"the event has {len(entry):,} bytes in the log, and brokers take about a million: "
                f"at most {records.MOST_ENTRY_BYTES:,} can be learnt; leave long texts out "
                "(exclude=)"
            )
        try:
            model.learn_one(x, y)
        except BaseException:
            # A step may have learnt before another one failed; what the state has is right.
            self._drop(key)
            raise
        return names, entry

    def _write_snapshot(self, held: _Held, state: KeyState) -> None:
        held.log = key_log.snapshot(held.log, state, container.encoded(held.model))

    def _predicted(self, model: Model, x: dict[str, Any]) -> Predicted:
        label = _plain_value("prediction", model.predict_one(x))
        if not self._probabilities:
            return label, None
        found = model.predict_proba_one(x)
        return label, {_plain_value("label", y): float(p) for y, p in found.items()}

    # Models in memory

    def _held_for(self, key: str | bytes, source: str, state: KeyState) -> _Held | None:
        """Return the model of a key; None: it has learnt nothing yet."""
        held = self._held.get(key)
        try:
            if held is None or not held.log.is_current(state):
                self._drop(key)
                found = key_log.restore(state, self._slots, self._learnt_again)
                if found is None:
                    return None
                self.n_restored += 1
                self._hold(key, held := _Held(*found))
        except Exception as error:
            _raise_of_state(key, error)
        self._held.move_to_end(key)
        if held.log.generation.source != source:
            raise KeyedStateError(
                f"the model of key {key!r} has learnt from topic "
                f"{held.log.generation.source!r}, and now an event comes from {source!r}: "
                "offsets of two topics cannot be compared; use one topic, or a consumer group each"
            )
        return held

    def _hold(self, key: str | bytes, held: _Held) -> None:
        """Put a model into memory, as large as it is now; drop those used longest ago."""
        self._drop(key)
        held.bytes = _BESIDE_ARRAYS + sum(
            getattr(step, "memory_usage", 0) for step in container.steps_of(held.model)
        )
        self._held[key] = held
        self.bytes += held.bytes
        # But never the one in use.
        while len(self._held) > 1 and (
            len(self._held) > self._max_models or self.bytes > self._max_bytes
        ):
            self.bytes -= self._held.popitem(last=False)[1].bytes

    def _drop(self, key: str | bytes) -> None:
        if (held := self._held.pop(key, None)) is not None:
            self.bytes -= held.bytes

    def _learnt_again(self, of: Generation, file: bytes | None, events: Iterator[Entry]) -> Model:
        if of.made_by != self._made_by:
            raise KeyedStateError(
                f"the models named {self._name!r} were made with {of.made_by}, and now with "
                f"{self._made_by}: give each of several models on a stream a name= of its own, or "
                "use another consumer group to begin all keys anew"
            )
        self._common.check(of, self._name)
        if file is None:
            model = self._common.new(of.common)
        else:
            model = container.decoded(file, "the snapshot of a key")[0]
        for entry in events:
            model.learn_one(entry.x, entry.y)
        return model


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
    try:
        return as_json(value, what)
    except ModelFileError as error:
        raise BadEventError(
            f"the {what} is a {type(value).__name__}: a log holds numbers, texts and booleans"
        ) from error


def _repeated(key: str | bytes, log: KeyLog, state: KeyState, position: Position) -> Answer:
    """Return what was predicted for an event that was learnt before."""
    try:
        prediction, probabilities = log.answer(state, position) or (None, None)
    except Exception as error:
        _raise_of_state(key, error)
    found = None if probabilities is None else {y: p for y, p in probabilities}
    return Answer(prediction, found, learnt=False, repeated=True)


def _raise_of_state(key: str | bytes, error: BaseException) -> NoReturn:
    """Raise what an error of the state, or of restoring from it, means: no event is at fault."""
    if isinstance(error, _OF_MACHINE) or not isinstance(error, Exception):
        raise error
    why = str(error) if isinstance(error, KeyedStateError) else f"{type(error).__name__}: {error}"
    raise KeyedStateError(f"the state of key {key!r:.100}: {why}") from error
