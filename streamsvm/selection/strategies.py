"""The rules by which a learner chooses among examples: they are settings, and hold no examples."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from streamsvm._parameter_checks import check_number, check_seed, check_whole

MOST_CANDIDATES = 10_000
"""Their kernel values with all support vectors are kept."""

LEAST_SHARE = 1e-6
"""The least share of a stream that can be learnt."""

_AT_ONCE = 16
"""Arrivals of which the margins are computed together, at most, if one of them may be the last."""


class Counts(NamedTuple):
    """How many candidates came so far, and since the last choice; of the latter, how many near."""

    n_came: int = 0
    n_since: int = 0
    n_near: int = 0


class Selection(abc.ABC):
    """The base class of the rules; use one of the others."""

    name: ClassVar[str] = ""
    """Its name on the command line."""

    uses_labels: ClassVar[bool] = False
    """Whether the choice depends on the labels of candidates."""

    candidates: int
    """How many of the last examples wait, at most."""

    def ranks(self, distances: np.ndarray, draw: tuple[int, int]) -> np.ndarray:
        """Return a number for each candidate; that with the least is learnt, of equals the oldest.

        These are the `distances` from the border, float64 (n,), at least 0; if the rule uses
        labels, they are y f(x), below 0 for rows that are misclassified. `draw` is a seed: two
        numbers, which are others for each choice.
        """
        return distances

    @abc.abstractmethod
    def until(self, counts: Counts) -> int:
        """Return how many more arrivals to look at together, at least 1."""

    @abc.abstractmethod
    def arrivals(
        self, counts: Counts, distances: np.ndarray, delta: float
    ) -> tuple[int, int, bool]:
        """Return how many arrivals come before the next choice, and whether it is due after them.

        `distances` are those of the next arrivals, at most as many as `until` returned. The second
        number is how many are near the border then, since the last choice. `delta` is by how much
        the solver's gradients violate optimality.
        """


@dataclass(frozen=True)
class _SharedOut(Selection):
    """A rule by which a given share of the stream is learnt."""

    candidates: int = 50
    share: float = 0.1

    def __post_init__(self) -> None:
        check_whole("candidates", self.candidates, 1, MOST_CANDIDATES)
        check_number("share", self.share, LEAST_SHARE, 1.0)

    def until(self, counts: Counts) -> int:
        """Return how many more arrivals to look at together: see `Selection`."""
        n, due = counts.n_came, int(counts.n_came * self.share) + 1
        more = max(1, math.ceil(due / self.share) - n - 1)
        while int((n + more) * self.share) < due:
            more += 1
        return more

    def arrivals(
        self, counts: Counts, distances: np.ndarray, delta: float
    ) -> tuple[int, int, bool]:
        """Return how many arrivals come before the next choice: see `Selection`."""
        n = len(distances)
        before, after = counts.n_came * self.share, (counts.n_came + n) * self.share
        return n, 0, int(after) > int(before)


@dataclass(frozen=True)
class Random(_SharedOut):
    """Learn examples drawn at random from the candidates: what the other rules are compared with.

    Parameters
    ----------
    candidates
        How many of the last examples wait, at least 1 and at most 10,000; 50 by default, as in the
        thesis.
    share
        The share of the stream that is learnt, above 0 and at most 1; .1 by default: one example
        of ten.
    seed
        Seed of the draws; None: a different one each time.

    Examples
    --------
    >>> from streamsvm.selection import Random
    >>> Random(share=0.2)
    Random(candidates=50, share=0.2, seed=None)

    """

    seed: int | None = None

    name: ClassVar[str] = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seed(self.seed)

    def ranks(self, distances: np.ndarray, draw: tuple[int, int]) -> np.ndarray:
        """Return random numbers: see `Selection`."""
        return np.random.default_rng(draw).random(len(distances))


@dataclass(frozen=True)
class Gradient(_SharedOut):
    """Learn the candidate that is most misclassified: the least y f(x) (thesis, equation 4.13).

    Its step increases the dual most. Where labels are wrong it learns just these: use `Active`
    unless labels can be trusted.

    Parameters
    ----------
    candidates, share
        As in `Random`.

    Examples
    --------
    >>> from streamsvm.selection import Gradient
    >>> Gradient(candidates=20)
    Gradient(candidates=20, share=0.1)

    """

    name: ClassVar[str] = "gradient"
    uses_labels: ClassVar[bool] = True


@dataclass(frozen=True)
class Active(_SharedOut):
    """Learn the candidate nearest to the border: the least |f(x)| (thesis, equation 4.14).

    Of several classes: with the least distance between the two best scores, of LASVM the least
    margin of the best class. The labels of candidates are not looked at, so that wrong ones do not
    attract it.

    Parameters
    ----------
    candidates, share
        As in `Random`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import LASVMClassifier
    >>> from streamsvm.selection import Active
    >>> model = LASVMClassifier(selection=Active())
    >>> evaluate.progressive_val_score(datasets.Bananas(), model, metrics.Accuracy())
    Accuracy: 8...%
    >>> model.n_examples
    566

    """

    name: ClassVar[str] = "active"


@dataclass(frozen=True)
class AutoActive(Selection):
    """As `Active`; an example is learnt as soon as a few near the border have come.

    Near is |f(x)| < 1 + delta / 2, with delta, of LASVM, by how much gradients still violate
    optimality. So more is learnt of the stream while it teaches more (thesis, 4.3.2).

    Parameters
    ----------
    candidates
        How many of the last examples wait, and after how many arrivals one is learnt anyway; 100
        by default, as in the thesis.
    near
        After so many arrivals near the border one is learnt, at least 1; 5 by default, as in the
        thesis.

    Examples
    --------
    >>> from streamsvm.selection import AutoActive
    >>> AutoActive().candidates
    100

    """

    candidates: int = 100
    near: int = 5

    name: ClassVar[str] = "autoactive"

    def __post_init__(self) -> None:
        check_whole("candidates", self.candidates, 1, MOST_CANDIDATES)
        check_whole("near", self.near, 1, MOST_CANDIDATES)

    def until(self, counts: Counts) -> int:
        """Return how many more arrivals to look at together: see `Selection`."""
        return max(1, min(_AT_ONCE, self.candidates - counts.n_since))

    def arrivals(
        self, counts: Counts, distances: np.ndarray, delta: float
    ) -> tuple[int, int, bool]:
        """Return how many arrivals come before the next choice: see `Selection`."""
        near = np.flatnonzero(distances < 1.0 + 0.5 * delta)
        if counts.n_near + len(near) >= self.near:
            return int(near[self.near - counts.n_near - 1]) + 1, self.near, True
        n = len(distances)
        return n, counts.n_near + len(near), counts.n_since + n >= self.candidates


NAMES = {cls.name: cls for cls in (Random, Gradient, Active, AutoActive)}
"""The rules by their names on the command line."""
