"""Objects that several threads may use at the same time, and that survive a fork."""

from __future__ import annotations

import copy
import functools
import inspect
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, cast
from weakref import WeakValueDictionary

from streamsvm.errors import ForkedModelError, ModelBusyError
from streamsvm.support.writable import own_copies, writable

Method = TypeVar("Method", bound=Callable[..., Any])

_FORK_SECONDS = 3.0
"""The most seconds that a fork waits, in all, until other threads release their locks."""


def locked(method: Method) -> Method:
    """Let a method of a `Locked` object hold its lock."""

    @functools.wraps(method)
    def with_lock(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            return method(self, *args, **kwargs)

    return cast(Method, with_lock)


def learning(function: Method) -> Method:
    """Let a function that changes a `Locked` object, its first argument, hold its lock.

    ModelBusyError: the caller is in the middle of such a function of the same object.
    """

    @functools.wraps(function)
    def with_lock(thing: Any, *args: Any, **kwargs: Any) -> Any:
        with thing.lock:
            if thing.is_learning:
                refuse_to_learn()
            thing.is_learning = True
            try:
                return function(thing, *args, **kwargs)
            finally:
                thing.is_learning = False

    return cast(Method, with_lock)


class Locked:
    """Base class of objects with a lock, which every method that uses the content holds.

    Copies and pickles are made under the lock, so they are consistent. Even shallow copies share
    nothing with the original that changes in place. A forked process can use the object, unless
    another thread held the lock when the process was forked; then each use of the object in the
    child raises `ForkedModelError`.

    The lock does not keep out what runs on the thread that holds it: a signal handler, or a method
    of the user's objects. Where that must not learn, `is_learning` is True.
    """

    is_learning = False
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
        """Return the attributes that a copy needs, not copied yet; the caller holds the lock."""
        # A copy is not in the middle of anything.
        return {**self.__dict__, "lock": None, "is_learning": False}

    def _after_fork(self) -> None:
        """Replace attributes that must not be used in a forked process, besides the lock."""

    def _make_unusable(self) -> None:
        """Delete all attributes but the parameters, as another thread was changing the object."""
        parameters = inspect.signature(type(self)).parameters
        for name in [name for name in self.__dict__ if name.lstrip("_") not in parameters]:
            del self.__dict__[name]
        self.lock = _LostLock()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Python calls this only for attributes that do not exist.
            if isinstance(self.__dict__.get("lock"), _LostLock):
                _refuse()
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:
            return own_copies(self._contents())

    def __setstate__(self, contents: dict[str, Any]) -> None:
        self.__dict__.update(writable(contents))
        self.share_lock(threading.RLock())

    def __deepcopy__(self, known: dict[int, Any]) -> Self:
        with self.lock:
            contents = copy.deepcopy(self._contents(), known)
        copied = type(self).__new__(type(self))
        copied.__setstate__(contents)
        return copied


def refuse_to_learn() -> NoReturn:
    """Say that an object is learning already, on this thread."""
    raise ModelBusyError(
        "this model is learning: a signal handler, or other code that runs in the middle of that, "
        "must not learn on it; let the handler note the event, and learn it afterwards"
    )


def _refuse() -> NoReturn:
    raise ForkedModelError(
        "another thread was changing this model when the process was forked: load a saved model "
        "here, or use a copy that was made before the fork"
    )


class _LostLock:
    """The lock of an object that cannot be used any more: acquiring it raises."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> NoReturn:
        _refuse()

    def __enter__(self) -> NoReturn:
        _refuse()

    def __exit__(self, *error: object) -> None:
        pass


_objects: WeakValueDictionary[int, Locked] = WeakValueDictionary()
_forking = threading.Lock()
_forker = 0
"""The id of the thread that holds `_forking`, or 0."""
_held: list[Any] = []
"""The locks of objects that this thread holds during the fork."""


def _live_objects() -> list[Locked]:
    found = [reference() for reference in _objects.valuerefs()]
    return in_order([thing for thing in found if thing is not None])


def in_order(things: list[Any]) -> list[Any]:
    """Return objects in the order in which locks are taken, so that threads never wait for ever."""
    return sorted(things, key=lambda thing: (not getattr(thing, "is_around", False), id(thing)))


def _before_fork() -> None:
    global _forker
    stop = time.monotonic() + _FORK_SECONDS
    # Forks by two threads are done one after the other.
    if not _forking.acquire(timeout=_FORK_SECONDS):
        return
    _forker = threading.get_ident()
    _held.clear()
    # In the order in which the steps of a pipeline are locked: no deadlock.
    for thing in _live_objects():
        lock: Any = thing.__dict__.get("lock")
        if hasattr(lock, "release") and lock.acquire(timeout=max(0.0, stop - time.monotonic())):
            _held.append(lock)


def _after_fork_in_parent() -> None:
    global _forker
    if _forker != threading.get_ident():
        return
    while _held:
        _held.pop().release()
    _forker = 0
    _forking.release()


def _after_fork_in_child() -> None:
    global _forker, _forking
    held = set(map(id, _held)) if _forker == threading.get_ident() else set()
    # The earlier locks, too, so that their ids are not those of others. Some objects share one.
    renewed: dict[int, tuple[Any, Any]] = {}
    _forker, _forking = 0, threading.Lock()
    for thing in _live_objects():
        lock = thing.__dict__.get("lock")
        if lock is None or isinstance(lock, _LostLock):
            continue
        # Objects made while the fork waited are not in `held`: they are usable if their lock is
        # free.
        if id(lock) in held or lock.acquire(blocking=False):
            thing.share_lock(renewed.setdefault(id(lock), (lock, threading.RLock()))[1])
            thing._after_fork()
        else:
            thing._make_unusable()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
