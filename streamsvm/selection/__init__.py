"""Choosing examples: which of the last examples of a stream a learner learns.

A learner that is given one of these as `selection` keeps some examples waiting, its *candidates*,
and learns one of them from time to time: the one that its rule prefers. The others leave, oldest
first, without being learnt. So the model has fewer support vectors and takes less time; with
`Active` and `AutoActive`, which do not look at labels, it may also err less on data with wrong
labels (Bordes, thesis 2010, section 4.3).
"""

from streamsvm.selection.strategies import Active, AutoActive, Gradient, Random, Selection

__all__ = ["Active", "AutoActive", "Gradient", "Random", "Selection"]
