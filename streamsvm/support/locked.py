"""Objects that are used by one call at a time, whatever threads and signal handlers do."""

from __future__ import annotations

import copy
import functools
import os
import threading
from collections.abc import Callable
from typing import Any, NoReturn, Self, TypeVar, cast
from weakref import WeakValueDictionary

from streamsvm.errors import ForkedModelError, ModelBusyError
from streamsvm.support.writable import own_copies, writable

Method = TypeVar("Method", bound=Callable[..., Any])
Result = TypeVar("Result")


def guarded(function: Method) -> Method:
    """Let a function have a `Locked` object, its first argument, for itself.

    Another thread waits. ModelBusyError: the caller is inside of such a call of the same object,
    on the same thread.
    """

    @functools.wraps(function)
    def alone(thing: Any, *args: Any, **kwargs: Any) -> Any:
        with thing.lock:
            if thing.is_busy:
                refuse()
            try:
                thing.is_busy = True
                return function(thing, *args, **kwargs)
            finally:
                thing.is_busy = False

    return cast(Method, alone)


def locked(method: Method) -> Method:
    """Let a method of a `Locked` object, which changes nothing, keep other threads waiting.

    Guarded functions may call it.
    """

    @functools.wraps(method)
    def with_lock(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            return method(self, *args, **kwargs)

    return cast(Method, with_lock)


def refuse() -> NoReturn:
    """Say that an object is in use, on this thread."""
    raise ModelBusyError(
        "this model is in the middle of another call of the same thread: a signal handler, or a "
        "method of a name, value or label that it was given, must not use it; let it note the "
        "event, and use the model afterwards"
    )


def together(things: list[Any], function: Callable[[], Result]) -> Result:
    """Call a function that has several objects for itself; those without a lock do not matter."""
    guards = [thing for thing in things if isinstance(thing, Locked)]
    # Always in the same order, wrappers first, so that threads never wait for each other.
    for thing in sorted(guards, key=lambda thing: (not thing.is_around, id(thing)), reverse=True):
        function = functools.partial(guarded(_call), thing, function)
    return function()


def _call(thing: Any, function: Callable[[], Result]) -> Result:
    return function()


class Locked:
    """Base class of objects that are used by one call at a time.

    Its public methods that learn, predict or copy are `guarded`; they call private ones. Methods
    and properties that only look are `locked`.

    Even shallow copies share nothing with the original that changes in place. A forked process can
    use the object, unless another thread was using it when the process was forked; then each use of
    the object in the child raises `ForkedModelError`.
    """

    is_busy = False
    """Whether a guarded function is using it, on the thread that holds the lock."""
    is_around = False
    """Whether it holds others, whose locks are taken after its own."""

    def __init__(self) -> None:
        self.share_lock(threading.RLock())

    def clone(self, new_params: Any = None, include_attributes: bool = False) -> Any:
        """Return a new object with the same parameters: see River's ``base.Base.clone``.

        Parameters
        ----------
        new_params
            Parameters that replace those of this object, by name.
        include_attributes
            Whether the new object has learnt what this one has.

        Returns
        -------
        The new object.

        """
        if include_attributes and not new_params:
            # River would copy each attribute, and a lock cannot be copied.
            return copy.deepcopy(self)
        return super().clone(new_params, include_attributes)  # type: ignore[misc]

    def share_lock(self, lock: Any) -> None:
        """Use this lock from now on."""
        self.lock = lock
        _objects[id(self)] = self

    def _contents(self) -> dict[str, Any]:
        """Return the attributes that a copy needs, not copied yet; the caller is guarded."""
        return {**self.__dict__, "lock": None, "is_busy": False}

    @guarded
    def __getstate__(self) -> dict[str, Any]:
        return own_copies(self._contents())

    def __setstate__(self, contents: dict[str, Any]) -> None:
        self.__dict__.update(writable(contents))
        self.share_lock(threading.RLock())

    @guarded
    def __deepcopy__(self, known: dict[int, Any]) -> Self:
        contents = copy.deepcopy(self._contents(), known)
        copied = type(self).__new__(type(self))
        copied.__setstate__(contents)
        return copied


class _LostLock:
    """The lock of an object that a forked process cannot use: acquiring it raises."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> NoReturn:
        raise ForkedModelError(
            "another thread was using this model when the process was forked: load a saved model "
            "here, or use a copy that was made before the fork"
        )

    __enter__ = acquire

    def __exit__(self, *error: object) -> None:
        pass


_objects: WeakValueDictionary[int, Locked] = WeakValueDictionary()


def _after_fork() -> None:
    """Mark the objects whose lock a thread holds that this process does not have."""
    for thing in list(_objects.values()):
        if thing.__dict__.get("lock") is None or isinstance(thing.lock, _LostLock):
            continue
        if thing.lock.acquire(blocking=False):
            thing.lock.release()
        else:
            thing.lock = _LostLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
