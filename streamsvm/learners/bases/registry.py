"""All learners, each registered once: what the command, model files and tests know them by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from streamsvm.model_files import codec


class RegisteredLearner(NamedTuple):
    """A learner and the name that the command has for it."""

    name: str
    cls: type
    renamed: Mapping[str, str]
    """Parameters that had other names: {older: today's}; both are taken."""

    @property
    def configurations(self) -> list[dict[str, Any]]:
        """Parameters that use all of its compiled code between them: those of River's checks."""
        return list(self.cls._unit_test_params())  # type: ignore[attr-defined]


_learners: dict[str, RegisteredLearner] = {}


def register_learner(
    cls: type, name: str, renamed: Mapping[str, str] | None = None, **files: Any
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
    files
        What model files hold beside parameters and state: the fields of `codec.FileClass`.

    """
    _learners[name] = RegisteredLearner(name, cls, renamed or {})
    codec.register(cls, renamed=renamed or {}, **files)


def registered_learners() -> list[RegisteredLearner]:
    """Return all learners, sorted by name."""
    return [_learners[name] for name in sorted(_learners)]
