"""A model per key on Quix Streams: ``sdf.apply(models, stateful=True, metadata=True)``."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from connectors.batch import Position, Reject, shown
from connectors.errors import NotReadableError
from connectors.one_hot import one_hot
from streamsvm.errors import BadEventError, ParameterError
from streamsvm.monitor.watched import Model
from streamsvm.run.bad_events import BadEvents, OnError, RefusedEvent
from streamsvm.run.keyed.models import NOT_OF_EVENT, Answer, KeyedModels
from streamsvm.run.keyed.standing import Standing

_N_WITHOUT_TARGET, _MOST_NAMES = 100, 20
_NUMBERS = {float, int, bool}
_MAY_BE = "error", "repeated", "probabilities"  # fields that not all answers have

_log = logging.getLogger(__name__)


class ModelPerKey:
    """A model for each message key of a topic, kept in the state of Quix Streams.

    Called with each message, it returns the message with fields more: ``prediction``, what the
    model of the key says before it learns the message (None: it knows no label yet); ``learnt``,
    whether it learnt the message now; ``probabilities`` by label, if asked for; ``repeated``, if
    the message was learnt before; and ``error``, if it cannot be used. Fields of the message with
    these five names are not passed on.

    After a worker was killed, or partitions have moved, each model is, to the last bit, what one
    process makes of the events of its key in order: no event is lost or learnt twice.

    Parameters
    ----------
    model
        What each key begins with: a learner, a pipeline, or the path of a model file, which may
        have learnt already (a warm start). A learner, or a pipeline, that `streamsvm.save` takes,
        with labels of one value; not an `ActiveLearner`, a `Compare` or a `Selective`, which each
        prediction changes. It is not changed. If it has learnt nothing and has no seed, keys begin
        with it and seed 0: what is learnt again must not be drawn anew.
    target
        The field of the label. A message that lacks it, or has None, is only predicted. If the
        first 100 messages lack it, the log has a warning.
    features
        The fields to learn from; None: all others. Text is one-hot, None is missing: see
        `connectors.one_hot`.
    exclude
        Fields that are no features.
    transform
        A function of the message that returns the fields to learn from, with the label; None: the
        message has them. With ``value_deserializer="bytes"`` of the topic and ``json.loads`` here,
        a message that is no JSON is one that cannot be used; else it stops the application.
    probabilities
        Whether to return probabilities.
    name
        Of these models in the state; None: `target`. Several on one stream need a name each. The
        state has name, target, features and exclude: with others, the application stops.
    previous_models
        Models, or paths, that keys began with before `model` was given: their state names them.
    max_models, max_bytes
        Models beyond this number, or these bytes of memory, leave the memory, those used longest
        ago first. They come back from their state, which takes as long as loading the model, and
        learning at most as many bytes of events as it has (or 16 KB): milliseconds, and tens of
        them with kernels. Let it be more than the keys that are in use at a time.
    may_lack
        Whether to go on, with a warning, where the state of a partition lacks messages that the
        group has read: the changelog was cut or is gone, or models are new in a group that has
        read already. False: the worker stops, and says what to do.
    on_error
        What is done with a message that cannot be used, beside returning it with ``error``:
        ``"skip"``: it is counted (`bad`); ``"dead-letter"``: written to a file, too, with `path`;
        a callable is given it as a dict; ``"raise"``: the application stops.
    path
        The file of dead letters: see `BadEvents`.

    Attributes
    ----------
    models : KeyedModels
        The models: ``len(models)`` in memory, ``models.bytes`` their size, ``models.n_restored``
        how often one came back from its state.
    bad : BadEvents
        The messages that could not be used: ``bad.counts`` by kind.

    Raises
    ------
    ParameterError
        A parameter is out of range, or two contradict each other.
    ModelFileError
        The model cannot be saved, or is no model file.

    Examples
    --------
    >>> from streamsvm import LASVMClassifier, StandardScaler
    >>> from streamsvm.run.keyed import ModelPerKey
    >>> models = ModelPerKey(StandardScaler() | LASVMClassifier(), target="fraud", exclude=["id"])
    >>> # sdf = app.dataframe(topic).apply(models, stateful=True, metadata=True)

    """

    def __init__(
        self,
        model: Model,
        target: str,
        *,
        features: Sequence[str] | None = None,
        exclude: Collection[str] = (),
        transform: Callable[[Any], Mapping[str, Any]] | None = None,
        probabilities: bool = False,
        name: str | None = None,
        previous_models: Sequence[Model] = (),
        max_models: int = 1000,
        max_bytes: int = 2**30,
        may_lack: bool = False,
        on_error: OnError = "skip",
        path: str | Path | None = None,
    ) -> None:
        if not isinstance(target, str) or not target:
            raise ParameterError(f"target={target!r:.80}: use the name of the field of the label")
        exclude = _names("exclude", exclude)
        features = None if features is None else _names("features", features)
        if features is not None and target in features:
            raise ParameterError(f"features: {target!r} is the target: leave it out")
        if not (transform is None or callable(transform)):
            raise ParameterError(f"transform={transform!r:.80}: use a function of the message")
        self._target, self._features = target, features
        self._left_out = frozenset([*exclude, target])
        self._transform = transform
        self._probabilities = probabilities
        self.models = KeyedModels(
            model,
            previous_models,
            probabilities,
            max_models,
            max_bytes,
            target if name is None else name,
            {
                "target": target,
                "features": features,
                "exclude": sorted(exclude),
            },
        )
        self._n_without_target: int | None = 0  # of the first messages; None: that is known
        self._standing = Standing(target if name is None else name, may_lack)
        self._message: Any = None
        self._n_of_message: Counter[Any] = Counter()
        self.bad = BadEvents(on_error, path)

    def __call__(
        self,
        value: Any,
        key: Any = None,
        timestamp: int = 0,
        headers: Any = None,
        state: Any = None,
    ) -> dict[str, Any]:
        """Predict and learn a message; Quix Streams calls it, and gives all arguments.

        Parameters
        ----------
        value
            The message: fields by name.
        key
            Its key.
        timestamp
            Its time, which the state may ask for.
        headers
            Not used.
        state
            The state of the key.

        Returns
        -------
        dict[str, Any]
            The message with the fields that are said above.

        Raises
        ------
        ParameterError
            It was given no state.
        KeyedStateError
            The state of the key is damaged, or of another set-up; that of its partition lacks
            messages that the group has read.
        BadEventError
            With ``on_error="raise"``, the message cannot be used.

        """
        from quixstreams import message_context

        if state is None:
            raise ParameterError("no state: use .apply(models, stateful=True, metadata=True)")
        context = message_context()
        self._standing.check(state, context, timestamp)
        self.bad.n_events += 1
        x: dict[str, Any] = {}
        y = None
        try:
            _check_key(key)
            position = context.offset, self._number_of(key, context)
            value, found = self._transformed(value)
            x, y = self._event_of(found)
            answer = self.models.predict_then_learn(
                key, context.topic, position, x, y, _State(state)
            )
        except BadEventError as error:
            place = Position(f"{context.topic}[{context.partition}]", context.offset)
            return self._refused(value, x, y, place, str(error))
        return self._answered(value, answer)

    def model_of(self, key: Any, topic: str, state: Any) -> Model | None:
        """Return a copy of the model of a key, from within a function that has its state.

        Parameters
        ----------
        key
            The key, as Quix Streams gives it to functions with ``metadata=True``.
        topic
            The name of the topic.
        state
            The state of that key.

        Returns
        -------
        Model or None
            The model; None: it has learnt nothing yet.

        """
        return self.models.model_of(key, topic, _State(state))

    def _number_of(self, key: Any, context: Any) -> int:
        """Return how many events of this key its message has had before this one.

        ``expand=True`` and windows make several of one message, which has one offset.
        """
        if context is not self._message:
            # Kept, so that no other one is at its address.
            self._message = context
            self._n_of_message.clear()
        n = self._n_of_message[key]
        self._n_of_message[key] = n + 1
        return n

    def _transformed(self, value: Any) -> tuple[Any, Any]:
        """Return a message, as fields if it can be, and what the user's function makes of it."""
        if self._transform is None:
            return value, value
        found = _made_of_event(self._transform, value)
        return value if isinstance(value, Mapping) else found, found

    def _event_of(self, found: Any) -> tuple[dict[str, Any], Any]:
        """Return features and label of a message, as it was transformed."""
        if not isinstance(found, Mapping):
            raise BadEventError(
                f"the message is a {type(found).__name__}, not fields by name: transform= may make "
                "them of it"
            )
        self._look_for_target(found)
        y = found.get(self._target)
        if isinstance(y, float) and y != y:
            y = None
        if self._features is None:
            x = {name: v for name, v in found.items() if name not in self._left_out}
        else:
            x = {name: found[name] for name in self._features if name in found}
        if not all(type(v) in _NUMBERS for v in x.values()):
            x = _made_of_event(one_hot, x)
        return x, y

    def _look_for_target(self, fields: Mapping[str, Any]) -> None:
        """Warn, once, if none of the first messages has the target."""
        if self._n_without_target is None:
            return
        self._n_without_target += 1
        if self._target in fields:
            self._n_without_target = None
        elif self._n_without_target == _N_WITHOUT_TARGET:
            _log.warning(
                "none of the first %d events has the target `%s`, so that nothing was learnt; the "
                "last one has %s: is target= the name of the label?",
                self._n_without_target,
                self._target,
                ", ".join(f"`{name}`" for name in list(fields)[:_MOST_NAMES]) or "no fields",
            )
            self._n_without_target = None

    def _answered(self, value: Any, answer: Answer) -> dict[str, Any]:
        fields = _fields_of(value)
        fields |= {"prediction": answer.prediction, "learnt": answer.learnt}
        if self._probabilities:
            found = answer.probabilities
            fields["probabilities"] = found and {str(y): p for y, p in found.items()}
        if answer.repeated:
            fields["repeated"] = True
        return fields

    def _refused(
        self, value: Any, x: dict[str, Any], y: Any, place: Position, reason: str
    ) -> dict[str, Any]:
        """Return a message that cannot be used with the reason, and count it."""
        if isinstance(value, Mapping):
            self.bad.take(RefusedEvent(x, y, place, dict(value), 1.0), "bad event", reason)
        else:
            value = shown(value)
            self.bad.take(Reject(place, "not an event", reason, value), "not an event", reason)
        return _fields_of(value) | {"prediction": None, "learnt": False, "error": reason}


def _fields_of(value: Any) -> dict[str, Any]:
    """Return a message without the fields that answers may have."""
    fields = {**value} if isinstance(value, Mapping) else {"value": value}
    for name in _MAY_BE:
        fields.pop(name, None)
    return fields


def _names(what: str, given: Any) -> list[str]:
    are_several = isinstance(given, Collection) and not isinstance(given, str)
    if not are_several or not all(isinstance(name, str) for name in given):
        raise ParameterError(f"{what}={given!r:.80}: use a list of names of fields")
    return list(given)


def _made_of_event(function: Callable[[Any], Any], event: Any) -> Any:
    """Call a function of an event; errors that are no one else's are the event's."""
    try:
        return function(event)
    except NOT_OF_EVENT:
        raise
    except Exception as error:
        is_ours = isinstance(error, NotReadableError)
        why = str(error) if is_ours else f"{type(error).__name__}: {error}"
        raise BadEventError(why) from error


def _check_key(key: Any) -> None:
    if key is None:
        raise BadEventError(
            "the message has no key, by which models are told apart: group_by() gives it one"
        )
    if not isinstance(key, (str, bytes)):
        raise BadEventError(
            f"the key {key!r:.100} is a {type(key).__name__}: models are told apart by text or "
            'bytes; read keys with key_deserializer="str"'
        )


class _State:
    """The state of a key, as `KeyState`."""

    __slots__ = ("get", "set")

    def __init__(self, state: Any) -> None:
        # Quix keeps what is set in this commit as it is, and reads all else from the disk.
        self.get = state.get_bytes
        self.set = state.set_bytes
