"""Scale and width of an RBF kernel, and C, by trial: candidates, compared on the first examples.

Rows are taken as they are, or each feature is divided by its standard deviation; gamma is 1, 4 or
16 times the rule of `auto_gamma`. After 4, 8, 16, ..., 1024 examples each candidate learns all
examples so far anew, predicting each before it learns it; of 256 or more, only a quarter or half if
it errs far more than the best by then. Scaled rows whose features weigh what the older half of the
examples says (`learned_relevance`) are candidates, too: they must err clearly less on the newer
half. Then the best of all is tried with gamma / 4 and C 10, unless C is given. The model goes on as
the one that erred least; a narrower kernel must err less by more than chance, or be surer, too, and
the larger C by more than a standard deviation (`relearning.are_fewer`).

The work is spread over the events that come then (`race`), so that none takes long: most trials are
over at once, those of many classes or features hundreds of events later. After the last trial there
is no cost; the examples are kept until then. As candidates learn rows that are scaled already, no
row that was kept is ever scaled otherwise than the rows that come (later: `KernelModel.rescale`).
All errors count alike: weights that grow with time chose worse on our streams
(`benchmarks.default_streams`).
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.models.kept_examples import NUMBER, KeptExamples
from streamsvm.models.kernel import auto_gamma
from streamsvm.support.declaration import COUNT, NOT_NEGATIVE, Field, NamedArrays, Range, as_int
from streamsvm.support.rows import Columns, Rows, cut, sparse

FIRST = 4
"""The number of examples at the first trial; before, the model follows the rule."""

LAST = auto_gamma.LAST_SET
"""The number of examples at the last trial."""

WIDTHS = (1.0, 4.0, 16.0)

_PREFIX = "first_"


class Candidate(NamedTuple):
    """What is tried."""

    width: float  # gamma divided by that of the rule
    is_scaled: bool  # whether features are divided by their standard deviations
    C: float
    is_weighted: bool = False  # whether features that seem irrelevant count little


class Begun(NamedTuple):
    """What a model was like when a race began, as far as examples do not tell."""

    n: int  # the number of examples
    n_kept: int  # those of them that its trial has: another number after an interruption only
    n_slots: int  # in use: a candidate has room for as many examples at once
    n_classes: int
    variances: np.ndarray  # float64 (d,): of all values of each feature
    draws: np.ndarray  # uint64 (1,): the state of the random numbers; (0,) without


class Choice(NamedTuple):
    """What was chosen, for reports."""

    n_candidates: int
    n_examples: int
    is_scaled: bool
    n_relevant: int = 0  # if features are weighted: how many matter


def candidates_of(scale: Any, gamma: Any, kernel: Any, C: float) -> list[Candidate]:
    """Return the candidates that the parameters of a model allow, ties going to the first.

    There are none if the model follows the rule on rows as they are, or has a kernel of its own.
    Raises ParameterError if `scale` or `gamma` is wrong, or does not go with the kernel.
    """
    if not (isinstance(scale, bool) or scale == "auto"):
        raise ParameterError(f"scale={scale!r}: use 'auto', True or False")
    if gamma not in ("auto", "scale"):
        raise ParameterError(
            f"gamma={gamma!r}: use 'auto' or 'scale'; for a number, kernel=kernels.RBF(gamma=...)"
        )
    if kernel is not None:
        if scale is True:
            raise ParameterError(
                "scale=True: only without `kernel`, whose gamma is for rows as they are; leave "
                "one out, or put a StandardScaler in front"
            )
        return []
    widths = WIDTHS if gamma == "auto" else (1.0,)
    scales = (True, False) if scale == "auto" else (scale,)
    found = [Candidate(*pair, C) for pair in itertools.product(widths, scales)]
    return [] if found == [Candidate(1.0, False, C)] else found


class Trial(KeptExamples):
    """The first examples of a stream, and the candidates, one at least, that learn them.

    After an interruption there are more examples than the model has counted.
    """

    def __init__(self, candidates: list[Candidate]) -> None:
        super().__init__(_PREFIX, NUMBER)
        self.candidates = candidates
        self._first, self._last = FIRST, LAST
        # The power of two at which the latest race was due when it began; 0: there was none.
        self._began_for = 0
        # The race that is on, a `Race`, not in copies; and the best candidate of the one before.
        self.begun: Begun | None = None
        self.race: Any = None
        self.winner: Candidate | None = None
        # How many of the first examples were taken back.
        self.n_forgotten = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the examples, and of the candidates that learn them now."""
        return super().nbytes + (0 if self.race is None else self.race.nbytes)

    def as_file(self, n: int, d: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what a file of a model of n examples holds: JSON values and arrays."""
        if self.n_examples + self.n_forgotten < n or (n >= LAST and self.begun is None):
            # After an interruption it may lack the last example, or the last race, which begins
            # after the next one: it is over in the file.
            return {}, {}
        content: dict[str, Any] = {"forgotten": self.n_forgotten}
        arrays = self.as_arrays(d)
        if self.winner is not None:
            arrays["race_winner"] = np.array(self.winner, np.float64)
        if self.begun is not None:
            *numbers, variances, draws = self.begun
            arrays |= {"race": np.array(numbers, np.int64), "race_variances": variances}
            arrays["race_draws"] = draws
        return content, arrays

    def read_file(
        self, content: dict[str, Any], arrays: NamedArrays, n: int, d: int, n_classes: int
    ) -> bool:
        """Set what `as_file` returned; tell whether the trial goes on.

        Raises ValueError if it does not fit n examples.
        """
        n_forgotten = self.n_forgotten = as_int("forgotten", content.get("forgotten", 0), 0, n)
        has_none = _PREFIX + "y" not in arrays
        if (has_none and n_forgotten < n) or (n >= LAST and "race" not in arrays):
            # It is over, or has not begun.
            return n == 0
        self.read(arrays, d, n_classes)
        if self.n_examples + n_forgotten < n:
            raise ValueError("fewer examples of the trial than were learnt")
        # A race that is due, if an interruption has skipped it, is not among those that began.
        skipped = content.get("adapts_at", n + 1)
        self._began_for = self._due_before(min(n, skipped - 1))
        if "race_winner" in arrays:
            found = arrays.take("race_winner", Field((4,), range=NOT_NEGATIVE), {}).tolist()
            width, is_scaled, C, is_weighted = found
            self.winner = Candidate(width, bool(is_scaled), C, bool(is_weighted))
        if "race" in arrays:
            found = arrays.take("race", Field((4,), np.int64, range=COUNT), {}).tolist()
            began, count, n_slots, known = found
            is_early = 0 < began <= n and 0 < count <= self.n_examples and known <= n_classes
            if not is_early or n_slots > count:
                raise ValueError("race: it began with more examples or classes than there are")
            d, n_draws = (arrays.length_of(f"race_{name}", 0) for name in ("variances", "draws"))
            variances = arrays.take("race_variances", Field((d,), range=NOT_NEGATIVE), {})
            draws = arrays.take("race_draws", Field((n_draws,), np.uint64, range=Range(1)), {})
            self.begun = Begun(began, count, n_slots, known, variances, draws)
            self._began_for = self._due_before(n if began >= skipped else skipped - 1)
        return True

    def without(self, numbers: np.ndarray, columns: Columns, is_sparse: bool) -> Trial:
        """Return the trial of the other examples, over some columns; a race begins once more."""
        is_kept = ~np.isin(self.facts()[NUMBER.name], numbers)
        new = self.only(np.flatnonzero(is_kept), columns)
        new.race, new.n_forgotten = None, self.n_forgotten + int((~is_kept).sum())
        begun = self.begun
        if begun is not None:
            n_kept = int(is_kept[: begun.n_kept].sum())
            moments = auto_gamma.moments_over(new.first(n_kept, is_sparse))
            variances = np.maximum(0.0, moments[1] / max(1, n_kept))
            slots = min(begun.n_slots, n_kept)
            begun = begun._replace(n_kept=n_kept, n_slots=slots, variances=variances)
            new.begun = begun if n_kept else None
        return new

    def first(self, n: int, is_sparse: bool) -> Rows:
        """Return the first n rows."""
        x = cut(self.joined()[0], 0, n)
        return sparse(x) if is_sparse else x

    def _due_before(self, n: int) -> int:
        """Return the latest power of two, up to n examples, at which a race was due, or 0."""
        return min(1 << (n.bit_length() - 1), self._last) if n >= self._first else 0

    def is_due(self, n: int) -> bool:
        """Tell whether a race begins after n examples, a power of two or after an interruption."""
        return self._due_before(n) > self._began_for

    def begin(self, begun: Begun) -> None:
        """Begin a race, in place of one that is not over yet: this one has more examples."""
        if self.race is not None:
            self.race.leave()
        # Last what says that it has begun, as an interruption between them does no harm then.
        self.begun, self.race = begun, None
        self._began_for = self._due_before(begun.n)

    def expect(self, n: int) -> None:
        """Skip the trials, of which nothing would remain, before the last one of n examples."""
        self._first = max(FIRST, 1 << (n.bit_length() - 1))

    def only_at(self, n: int) -> None:
        """Let there be one trial only, after n examples, or the power of two before."""
        self._first = self._last = 1 << (n.bit_length() - 1)
