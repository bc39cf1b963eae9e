"""Random weights of features, drawn from their names: the same in each process and in any order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from streamsvm.errors import FeatureError
from streamsvm.features.names import Name, is_long

_MOST_NUMBERS = 2**24
"""So many weights are kept (67 MB); then all are forgotten, and drawn again when needed."""


def text_of(name: Name) -> str:
    """Return the text that a feature's weights are drawn from; equal names have equal texts.

    FeatureError: the name is no string, bytes or number, nor a tuple of them. The text of other
    objects may differ from process to process.
    """
    if isinstance(name, str):
        return repr(str(name))
    if isinstance(name, (int, float, np.integer, np.floating)):
        # 1, 1.0 and True are the same name to a dict.
        return repr(int(name)) if name % 1 == 0 else repr(float(name))
    if isinstance(name, bytes):
        return repr(bytes(name))
    if isinstance(name, tuple):
        return f"({','.join(map(text_of, name))})"
    raise FeatureError(
        f"the name of a feature is {name!r:.80} ({type(name).__name__}): it decides on "
        "weights or order, so use a string, a number, or a tuple of them"
    )


def normals_of(text: str, n: int, seed: int) -> np.ndarray:
    """Return n independent draws from a normal distribution of variance 1, float32.

    They depend on nothing but the arguments: not on the process, nor on NumPy's version.
    """
    # SHAKE is a hash function with as many bytes of output as wanted.
    data = f"{seed}:{text}".encode(errors="surrogatepass")
    words = np.frombuffer(hashlib.shake_128(data).digest(16 * n), "<u8")
    # In (0, 1], as the logarithm of 0 is infinite.
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53
    # The method of Box and Muller.
    length, angle = np.sqrt(-2.0 * np.log(uniform[:n])), 2.0 * np.pi * uniform[n:]
    return (length * np.cos(angle)).astype(np.float32)


class RandomDirections:
    """The n random weights of features by name, drawn when they are first asked for.

    They are a function of the name and the seed: what is kept here only saves time.
    """

    def __init__(self, n: int, seed: int) -> None:
        self._n, self._seed = n, seed
        self._known: dict[Name, tuple[str, np.ndarray]] = {}

    def of(self, names: Sequence[Name]) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of features in the order of their texts, as order and directions.

        int64 (d,): the names by increasing text, without those that are too long. A sum in this
        order is the same to the last bit, whatever order the names come in. float32 (d, n): their
        weights. FeatureError: weights cannot be drawn from a name.
        """
        found = [(*self._feature(name), i) for i, name in enumerate(names) if not is_long(name)]
        found.sort(key=itemgetter(0))
        directions = np.empty((len(found), self._n), np.float32)
        for row, (_, weights, _) in enumerate(found):
            directions[row] = weights
        return np.array([i for _, _, i in found], np.int64), directions

    def _feature(self, name: Name) -> tuple[str, np.ndarray]:
        known = self._known
        # Threads and signal handlers may do this at the same time: all would add the same.
        feature = known.get(name)
        if feature is None:
            text = text_of(name)
            feature = text, normals_of(text, self._n, self._seed)
            if len(known) * self._n >= _MOST_NUMBERS:
                known.clear()
            known[name] = feature
        return feature
