"""The registry of learners, read by the command, `warm`, model files and tests."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import streamsvm
from streamsvm.model_files import codec

Parameters = dict[str, Any]
"""Parameters of a constructor by name."""


class RegisteredLearner(NamedTuple):
    """A learner and its name on the command line."""

    name: str
    cls: type
    variants: tuple[Parameters, ...]
    """Parameters with which `warm` compiles it."""

    @property
    def takes(self) -> str:
        """What it takes: "rows", "sentences" (`SequenceLearner`), "records" (`SentenceLearner`)."""
        return self.cls.takes  # type: ignore[attr-defined, no-any-return]


_learners: dict[str, RegisteredLearner] = {}


def register_learner(
    cls: type,
    name: str,
    variants: tuple[Parameters, ...] | None = None,
    **files: object,
) -> None:
    """Register a learner for the command, `streamsvm warm`, model files and tests.

    The signature of the constructor names the parameters, and the docstring of the class explains
    them. `variants` are sets of parameters that lead to different compiled code, for `warm`; None:
    the defaults, and a bound on the support vectors if the learner takes one. `files` are the
    fields of `codec.FileClass`: what model files hold besides parameters and state.
    """
    if variants is None:
        known = inspect.signature(cls).parameters
        variants = ({}, {"max_support_vectors": 100}) if "max_support_vectors" in known else ({},)
    _learners[name] = RegisteredLearner(name, cls, variants)
    codec.register(cls, **files)


def registered_learners(takes: str | None = None) -> list[RegisteredLearner]:
    """Return all learners sorted by name, or only those that take rows, or the like."""
    streamsvm.load_all()
    found = [_learners[name] for name in sorted(_learners)]
    return [learner for learner in found if takes in (None, learner.takes)]
