"""Methods that only some kernel learners have: of others, they are no attributes.

They hold the learner's lock, if they do not take it themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from streamsvm.support.locked import locked

Method = TypeVar("Method", bound=Callable[..., Any])


class _Available:
    """A method of learners that say that they have it; for others looking it up fails."""

    def __init__(self, method: Callable[..., Any], is_there: Callable[[Any], bool]) -> None:
        self._method, self._is_there = method, is_there
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, learner: Any, owner: type) -> Any:
        # A class may have a dual by some of its parameters only.
        if not self._is_there(owner if learner is None else learner):
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}")
        return self._method if learner is None else self._method.__get__(learner, owner)


def of_dual(method: Method) -> Method:
    """Let only learners with a dual have a method."""
    return cast(Method, _Available(locked(method), lambda learner: learner.has_dual))


def of_primal(method: Method) -> Method:
    """Let only learners without a dual have a method."""
    return cast(Method, _Available(locked(method), lambda learner: not learner.has_dual))


def of_keepers(method: Method) -> Method:
    """Let only learners that give examples back have a method, which takes the lock."""
    return cast(Method, _Available(method, lambda learner: learner.gives_back))
