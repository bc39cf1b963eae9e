"""What a learner of label sequences is to predict: a label for each token of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamsvm._parameter_checks import column_of
from streamsvm.errors import LabelError
from streamsvm.labels.class_labels import ClassLabels, plain, too_many_classes
from streamsvm.labels.label_column import MISSING
from streamsvm.structured.sentences import Sentences
from streamsvm.support.label_values import is_too_large, too_large


class SequenceTargets:
    """The labels of a learner of sentences; a token has the number of its label: 0, 1, ...

    They never change: as with `Targets`, a learner replaces them as a whole when a label comes.
    """

    def __init__(self, labels: ClassLabels) -> None:
        self.labels = labels

    @property
    def n_classes(self) -> int:
        """How many labels were seen."""
        return len(self.labels.seen)

    def having(self, seen: list[Any]) -> SequenceTargets:
        """Return targets with the same limit that have seen these labels."""
        return SequenceTargets(self.labels.having(seen))

    def labels_of(self, codes: np.ndarray) -> list[Any]:
        """Return the labels of tokens by their numbers, int (n,); None where it is -1."""
        named = [*self.labels.seen, None]
        return [named[code] for code in codes.tolist()]

    def read(
        self, y: Sequence[Any], sentences: Sentences
    ) -> tuple[np.ndarray, np.ndarray, SequenceTargets]:
        """Return the numbers of the labels of all tokens, int32, and targets that have them all.

        Between them: how many labels are known when each sentence is learnt, int64. Raises
        `LabelError` if a label cannot be used.
        """
        rows = list(column_of(y, "labels", LabelError))  # another thread may shorten y
        if len(rows) != sentences.n:
            raise LabelError(f"labels for {len(rows)} sentences, and {sentences.n} sentences")
        seen, numbers = self.labels.seen, self.labels.numbers
        found, known = np.empty(sentences.n_tokens, np.int32), np.empty(sentences.n, np.int64)
        ends = sentences.first.tolist()
        for i, labels in enumerate(rows):
            given = _listed(labels, i, ends[i + 1] - ends[i])
            try:
                codes = [numbers.get(label, MISSING) for label in given]
            except TypeError as error:
                raise LabelError(f"a label is no hashable: {error}") from error
            if MISSING in codes:
                if seen is self.labels.seen:
                    seen, numbers = [*seen], {**numbers}
                codes = [self._number_of(label, numbers, seen) for label in given]
            found[ends[i] : ends[i + 1]] = codes
            known[i] = len(seen)
        return found, known, self if seen is self.labels.seen else self.having(seen)

    def _number_of(self, label: Any, numbers: dict[Any, float], seen: list[Any]) -> float:
        """Return the number of a label, which is added if it is new."""
        label = plain(label)
        if label is None or label != label:
            raise LabelError("a label is missing (None or NaN): learn needs one for each token")
        if label not in numbers:
            if is_too_large(label):
                raise LabelError(too_large(label))
            if self.labels.most is not None and len(seen) >= self.labels.most:
                raise LabelError(too_many_classes(label, self.labels.most))
            numbers[label] = float(len(seen))
            seen.append(label)
        return numbers[label]


def _listed(labels: Any, i: int, n_tokens: int) -> list[Any]:
    """Return the labels of sentence i, which has so many tokens, as a list."""
    given = list(column_of(labels, f"the labels of sentence {i}", LabelError))
    if len(given) != n_tokens:
        raise LabelError(
            f"sentence {i} of this batch has {n_tokens} tokens and {len(given)} "
            "labels: give one label a token"
        )
    return given
