"""LaRank for label sequences as a River estimator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import (
    MOST_STEPS,
    check_cost,
    check_positive,
    check_seed,
    check_size,
    weights_of,
)
from streamsvm.errors import ParameterError
from streamsvm.labels.class_labels import ClassLabels
from streamsvm.learners.bases.registry import register_learner
from streamsvm.monitor.certificate import Certificate, Looks
from streamsvm.solvers.gap import KeptGap
from streamsvm.structured import vocabulary
from streamsvm.structured.batches import label_lists, sentences_in
from streamsvm.structured.sequences.file import SETTINGS_WITH_KERNELS
from streamsvm.structured.sequences.inference import Batch, new_solver
from streamsvm.structured.sequences.learner import LIMIT, SequenceLearner
from streamsvm.structured.sequences.model import LARANK
from streamsvm.structured.sequences.targets import SequenceTargets
from streamsvm.support.locked import guarded

_GROWTH = 1e-9


class LaRankSequenceLabeler(SequenceLearner):
    """Label the tokens of sentences by a linear SVM: as accurate as a batch SVM after one pass.

    The label of a token depends on its features, and on the labels before it. Every sentence is
    tried once (PROCESSNEW); after it, the coefficients of random support patterns, the examples
    with a nonzero coefficient, are improved (PROCESSOLD and OPTIMIZE). The weights of all features
    are kept, so that the time for a sentence does not depend on how many were seen.

    Labels may appear at any time, in any number, and so may features. An empty sentence is learnt
    and predicted as such. NaN, infinities and missing labels are refused, and change nothing.

    Parameters
    ----------
    inference
        "greedy", the default: labels are predicted from left to right, each after those predicted
        before; each token is an example. "exact": the best sequence of labels is predicted, by the
        Viterbi algorithm; each sentence is an example. Greedy is faster, and needs fewer patterns.
    order
        How many labels before a token its label depends on, up to 32; None, the default: 2. With
        exact inference 0 or 1; None is 1.
    C
        Positive: the cost of a wrong label, and the largest coefficient; .1 by default,
        for thousands of binary features. Larger for few, clean ones.
    reprocess
        How many times one PROCESSOLD and some OPTIMIZE steps follow each example, at least 0. None,
        the default: 1 with greedy inference, 5 with exact inference.
    optimize
        How many OPTIMIZE steps follow each PROCESSOLD, at least 0; 10 by default, as in the thesis.
    class_weight
        None, or a dict {label: factor} (1 for labels not named): the factor of C for tokens of this
        label, and with exact inference of what a wrong label costs there.
    window
        Keep only patterns of the last so many examples, at least 1: tokens with greedy inference,
        sentences with exact inference. None, the default: no pattern is removed for its age.
    max_support_patterns
        Keep at most this many support patterns, at least 2: the one with the smallest coefficient
        is removed. None, the default: no limit; memory then grows with the stream.
    max_features
        The most features to learn; further ones are ignored, and counted in `counters`. Eight
        million by default. A feature takes 4 bytes for each label, and some 32 more.
    kernel
        None, the default: linear, with a weight for each feature. Or a kernel of
        `streamsvm.kernels` that compares tokens of few numbers, such as pixels: with greedy
        inference, and up to 4,096 features. Time and memory then grow with the support patterns.
    cache_mb
        Megabytes for rows of the kernel matrix, above 0; 200 by default.
    seed
        Seed of the random draws of patterns; None: a different one each time.
    max_classes
        At least 2, 1000 by default: a sentence with one more label is refused, since memory grows
        with labels times features. None: no limit.

    Attributes
    ----------
    n_support_patterns, n_support_vectors
        Numbers of support patterns, and of nonzero coefficients.
    classes
        The labels seen, in the order of first appearance.
    n_examples, n_tokens, n_features, memory_usage
        Sentences, tokens and features seen; bytes of all arrays.

    References
    ----------
    Bordes, Usunier, Bottou, Sequence Labelling SVMs Trained in One Pass, ECML PKDD (2008); Bordes,
    New Algorithms for Large-Scale Support Vector Machines, thesis (2010), 5.1 and 5.3.

    Examples
    --------
    >>> from streamsvm import LaRankSequenceLabeler
    >>> model = LaRankSequenceLabeler(seed=42)
    >>> for _ in range(3):
    ...     model.learn_one([{"w": "the"}, {"w": "dog"}, {"w": "barks"}], ["DET", "NOUN", "VERB"])
    >>> model.predict_one([{"w": "the"}, {"w": "dog"}])
    ['DET', 'NOUN']

    """

    def __init__(
        self,
        inference: str = "greedy",
        order: int | None = None,
        C: float = 0.1,
        reprocess: int | None = None,
        optimize: int = 10,
        class_weight: dict[Any, float] | None = None,
        window: int | None = None,
        max_support_patterns: int | None = None,
        max_features: int = LIMIT,
        kernel: Any = None,
        cache_mb: float = 200.0,
        seed: int | None = None,
        max_classes: int | None = 1000,
    ) -> None:
        check_cost(C)
        check_size("reprocess", reprocess, 0, MOST_STEPS)
        if check_size("optimize", optimize, 0, MOST_STEPS) is None:
            raise ParameterError("optimize=None: use a whole number of at least 0")
        check_size("window", window)
        check_size("max_support_patterns", max_support_patterns, 2)
        cache_bytes = 0
        if kernel is not None:
            kernels.check_kernel(kernel)
            if inference != "greedy":
                raise ParameterError("kernel: only with inference='greedy'; None is linear")
            cache_bytes = int(check_positive("cache_mb", cache_mb) * 1e6)
        default = 1 if inference == "greedy" else 5
        solver = new_solver(
            LARANK,
            inference,
            order,
            steps=(default if reprocess is None else int(reprocess), int(optimize)),
            limit=max_support_patterns,
            window=window,
            seed=check_seed(seed),
            kernel=kernel,
            cache_bytes=cache_bytes,
        )
        super().__init__(solver, C, inference, order, class_weight, max_features, max_classes)
        self.C, self.reprocess, self.optimize = C, reprocess, optimize
        self.window, self.max_support_patterns = window, max_support_patterns
        self.kernel, self.cache_mb, self.seed = kernel, cache_mb, seed

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that the tests of all sequence learners run with."""
        yield {"seed": 42}
        yield {"order": 0, "reprocess": 2, "optimize": 3, "seed": 42}
        yield {"window": 90, "C": 1.0, "seed": 42}
        yield {"max_support_patterns": 60, "seed": 42}
        yield {"kernel": kernels.RBF(gamma=0.5), "C": 1.0, "seed": 42}
        yield {"kernel": kernels.Polynomial(), "window": 90, "order": 1, "seed": 42}
        yield {"kernel": kernels.RBF(gamma=0.5), "C": 1.0, "max_support_patterns": 90, "seed": 42}
        yield {"inference": "exact", "seed": 42}
        yield {"inference": "exact", "order": 0, "max_support_patterns": 6, "seed": 42}
        yield {"inference": "exact", "window": 8, "class_weight": {"B": 2.0}, "seed": 42}

    @property
    def n_support_patterns(self) -> int:
        """Number of support patterns: tokens with greedy inference, sentences with exact."""
        return len(self.solver.members)

    @property
    def n_support_vectors(self) -> int:
        """Number of nonzero coefficients."""
        with self.lock:
            return self.solver.n_vectors

    def _facts(self) -> dict[str, object]:
        return super()._facts() | {
            "support vectors": self.n_support_vectors,
            "support patterns": self.n_support_patterns,
            "dual objective": self.dual,
        }

    @property
    def dual(self) -> float:
        """The dual objective."""
        with self.lock:
            square = self.solver.square_norm(self.n_features, self.targets.n_classes)
            return self.solver.linear_part() - 0.5 * square

    def kept_gap(self) -> KeptGap:
        """Return the duality gap over the support patterns.

        Returns
        -------
        ``total``: by how much the objective is at most above the lowest possible one, over the
        patterns kept; and ``cost``, the sum of their C_i. Both are 0 before the first.

        """
        with self.lock:
            if not self.targets.n_classes:
                return KeptGap(0.0, 0.0)
            return KeptGap(*self.solver.kept_gap(self.targets.n_classes))

    # What a monitor asks for: see `Reported`.

    has_dual = can_be_watched = True
    covers = "kept"

    def at_bound(self) -> np.ndarray:
        """Return whether each nonzero coefficient is at its upper bound C_i.

        Returns
        -------
        bool, one value for each nonzero coefficient.

        """
        with self.lock:
            return self.solver.at_bound()

    @property
    def looks(self) -> Looks:
        """The sums of looks so far, which estimate and bound the mean gap."""
        return Looks.of(self.solver.model.info[0])

    @property
    def certificate(self) -> Certificate:
        """A bound on the mean normalised gap after the sentences, with 95 % probability."""
        value = self.looks.bound()
        if value is None:
            return Certificate(None, "no support pattern was looked at yet")
        return Certificate(value, "of the support patterns, after each sentence")

    @guarded
    def finish(
        self,
        X: Any = None,
        y: Any = None,
        w: Any = 1.0,
        gap: float | None = None,
        max_passes: int = 100,
        progress: Callable[[float, int], None] | None = None,
    ) -> float:
        """Continue until the duality gap is small: the batch solution.

        Parameters
        ----------
        X, y, w
            None: only the patterns kept are improved. Or exactly the sentences that were learnt, in
            the same order, as in `learn_many`: then all of them are (LaRankGap of the thesis).
        gap
            Positive: stop when the duality gap is at most this; None, the default: C, or when the
            dual grows by less than 1e-9 of itself in a pass.
        max_passes
            Stop after so many passes at the latest.
        progress
            Called after each pass with the duality gap and the number of support vectors; it may
            raise, which ends the work. None: it is not.

        Returns
        -------
        The duality gap, over the patterns kept or over all sentences.

        Raises
        ------
        ParameterError
            These are not as many sentences and tokens as were learnt, or `window` is set.

        """
        wanted = float(self.C) if gap is None else check_positive("gap", gap)
        check_size("max_passes", max_passes)
        batch = None if X is None else self._all_of(X, y, w)
        least = _GROWTH if gap is None else 0.0
        return self._finish(batch, wanted, least, max_passes, progress)

    def _rehearse_more(self, X: Any, labels: Any) -> None:
        self.finish(gap=1e-9, max_passes=1)
        if self.window is None and self.max_support_patterns is None and self.kernel is None:
            self.finish(X, labels, gap=1e-9, max_passes=1)

    def _all_of(self, X: Any, y: Any, w: Any) -> Batch:
        """Return the sentences that were learnt as a batch."""
        if self.kernel is not None:
            raise ParameterError("finish with X: not with a kernel; call finish() without X")
        if self.window is not None or self.max_support_patterns is not None:
            raise ParameterError(
                "finish with X: a learner with window or max_support_patterns is about the "
                "patterns that it keeps; call finish() without X"
            )
        sentences = sentences_in(X)
        n, n_tokens = self.n_examples, self.n_tokens
        if (sentences.n, sentences.n_tokens) != (n, n_tokens):
            raise ParameterError(
                f"finish with X: {sentences.n} sentences of {sentences.n_tokens} tokens, but "
                f"{n} of {n_tokens} were learnt; give all of them, in the same order"
            )
        # Without a limit, as the error is another one than that of one class too many.
        own = SequenceTargets(ClassLabels(self.classes))
        labels, known, targets = own.read(label_lists(y), sentences)
        if targets is not own:
            raise ParameterError("finish with y: there are labels that were not learnt")
        x = vocabulary.known_rows(self.vocabulary, sentences, self.n_features)
        return Batch(x, sentences.first, labels, known, weights_of(w, sentences.n) * self.cost)

    def _finish(
        self,
        batch: Batch | None,
        wanted: float,
        least: float,
        max_passes: int,
        progress: Callable[[float, int], None] | None,
    ) -> float:
        gap, dual, before = self._gap_of(batch), self.dual, -math.inf
        for _ in range(max_passes):
            if gap <= wanted or dual - before <= least * abs(dual):
                break
            if batch is not None:
                self.solver.learn_again(batch, self.targets.n_classes)
            self.solver.improve(self.targets.n_classes)
            gap, dual, before = self._gap_of(batch), self.dual, dual
            if progress is not None:
                progress(gap, self.n_support_vectors)
        return gap

    def _gap_of(self, batch: Batch | None) -> float:
        gap = self.kept_gap().total
        return gap if batch is None else gap + self.solver.other_gap(batch, self.targets.n_classes)


register_learner(LaRankSequenceLabeler, "sequence_larank", **SETTINGS_WITH_KERNELS)
