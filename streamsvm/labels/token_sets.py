"""Sets of labels for the tokens of sentences, from the scores of the labels at each token."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.confidence import conformal
from streamsvm.labels.class_labels import plain
from streamsvm.labels.counted_sets import Full
from streamsvm.labels.prediction_sets import LabelSets


class Margins(NamedTuple):
    """By how much each label is behind the best other one, at each token of a sentence."""

    labels: list[Any]
    values: np.ndarray  # float64 (tokens, labels)

    @staticmethod
    def of(scores: Sequence[Mapping[Any, float]]) -> Margins:
        """Return those of a score of each label at each token."""
        labels = list(scores[0]) if scores else []
        values = np.array([list(one.values()) for one in scores]).reshape(len(scores), len(labels))
        return Margins(labels, conformal.margins(values))


class TokenSets(LabelSets):
    """A set of labels for each token of a sentence; each token counts as an event.

    The thresholds are the same for all tokens of a sentence, whose labels come together.
    """

    kind, steps = "tokens", conformal.STEPS_OF_TOKENS
    # The others need probabilities, which labels of tokens have not.
    scores = ("least_ambiguous",)

    def wait(self) -> None:
        """Change nothing: sentences wait for labels anyway, and steps are small."""
        self.n_waiting = 0

    def of(self, predicted: Margins) -> tuple[Full, ...]:  # type: ignore[override]
        """Return the labels of the set of each token, the most likely one first."""
        labels, values = predicted
        if not labels:
            return ((),) * len(values)
        limits: Any = self._all.value
        if self.by_class:
            known = self._of_class
            limits = [known[y].value if y in known else math.inf for y in labels]
        chosen = values <= limits
        if not self.may_be_empty:
            chosen[np.arange(len(values)), values.argmin(axis=1)] = True
        found: list[list[int]] = [[] for _ in values]
        tokens, codes = np.nonzero(chosen)
        for t, c in zip(tokens.tolist(), codes.tolist(), strict=True):
            found[t].append(c)
        for t, some in enumerate(found):
            if len(some) > 1:
                some.sort(key=values[t].__getitem__)
        return tuple(tuple(labels[c] for c in some) for some in found)

    def learn(  # type: ignore[override]
        self, y: Sequence[Any], predicted: Margins, given: Sequence[Collection[Any]]
    ) -> bool:
        """Take the labels of a sentence, its margins and sets; return whether one was missed."""
        codes = {label: c for c, label in enumerate(predicted.labels)}
        known, before = set(self.met), self.n_missed
        for label, row, labels in zip(map(plain, y), predicted.values, given, strict=True):
            self._learn_token(label, row, codes.get(label), labels, label not in known)
        sizes = list(map(len, given))
        self.n += len(sizes)
        self.size += sum(sizes)
        self.n_single += sizes.count(1)
        self.n_empty += sizes.count(0)
        self.n_whole += sum(size > 1 and size >= len(self.met) for size in sizes)
        return self.n_missed > before

    def _learn_token(
        self, y: Any, margins: np.ndarray, code: int | None, given: Collection[Any], is_first: bool
    ) -> None:
        """Take the label of a token; `is_first`: no sentence before had it."""
        is_missed = y not in given
        counts = self.met.setdefault(y, [0, 0])
        if self.by_class and y not in self._of_class:
            self._of_class[y] = self.new_threshold
        threshold = self._of_class[y] if self.by_class else self._all
        score = math.inf if code is None else float(margins[code])
        threshold.learn(score if score == score else math.inf, is_missed, is_missed and is_first)
        counts[0] += 1
        counts[1] += is_missed
        self.n_missed += is_missed
        self.n_new += is_missed and is_first
        self.lately.append(is_missed)
