"""All learners, each registered once: what the command, model files and tests know them by."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from streamsvm.model_files import codec


class RegisteredLearner(NamedTuple):
    """A learner and the name that the command has for it."""

    name: str
    cls: type
    renamed: Mapping[str, str]
    """Parameters that had other names: {older: today's}; both are taken."""

    variants: tuple[dict[str, Any], ...]
    """Parameters that `warm` compiles it with."""

    @property
    def configurations(self) -> list[dict[str, Any]]:
        """The parameters that River's checks and the tests of all learners run with."""
        return list(self.cls._unit_test_params())  # type: ignore[attr-defined]


_learners: dict[str, RegisteredLearner] = {}


def register_learner(
    cls: type,
    name: str,
    renamed: Mapping[str, str] | None = None,
    variants: tuple[dict[str, Any], ...] | None = None,
    **files: Any,
) -> None:
    """Make a learner known: to the command, `streamsvm warm`, model files and the tests of all.

    Parameters
    ----------
    cls
        The class, whose constructor's signature names its parameters, and whose docstring explains
        them.
    name
        What the command calls it.
    renamed
        Parameters that had other names: {older: today's}; the constructor takes both.
    variants
        Parameters with which it is compiled in other ways than with its defaults, and those; by
        default its defaults, and a bound on its support vectors if it takes one.
    files
        What model files hold beside parameters and state: the fields of `codec.FileClass`.

    """
    if variants is None:
        takes = inspect.signature(cls).parameters
        variants = ({}, {"max_support_vectors": 100}) if "max_support_vectors" in takes else ({},)
    _learners[name] = RegisteredLearner(name, cls, renamed or {}, variants)
    codec.register(cls, renamed=renamed or {}, **files)


def registered_learners() -> list[RegisteredLearner]:
    """Return all learners, sorted by name."""
    return [_learners[name] for name in sorted(_learners)]
