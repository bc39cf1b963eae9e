"""The statistics of a scaler, and its fast path for single events."""

import re
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm._parameter_checks import check_number
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.native_events import availability
from streamsvm.native_events.fast_path import Generation
from streamsvm.native_events.scaler_path import ScalerFastPath
from streamsvm.support.feature_statistics import COUNT, MEAN, N_CLIPPED, N_ROWS, VARIANCE
from streamsvm.support.locked import Locked

_NOT_COPIED = (
    "_layouts", "_generation", "_fast_path", "_event_learn", "_event_transform"
)  # fmt: skip


class ScaledFeatures(Locked):
    """Base class of the scaler: it keeps the statistics, and binds the fast path to them.

    `clip` and `reject` are its limits, at least 1 (else ParameterError); None: no such limit.
    """

    one_hot: str | None  # a parameter of the scaler

    # The fast path and its methods, all set by `_set_fast_path`.
    _fast_path: ScalerFastPath | None
    _event_learn: Callable[[Any], bool | None]
    _event_transform: Callable[[Any], dict[Name, float] | None]

    def __init__(self, clip: float | None, reject: float | None) -> None:
        super().__init__()
        self.schema = Schema()
        self._statistics = np.zeros((N_ROWS, 0))
        self._limits = np.array([_limit("clip", clip), _limit("reject", reject)])
        self._set_up()

    @property
    def statistics(self) -> dict[Name, tuple[int, float, float]]:
        """Count, mean and variance of each feature that is scaled."""
        with self.lock:
            names = list(self.schema.names)
            figures = self._fitted()[: VARIANCE + 1, : len(names)].T.tolist()
        return {
            name: (int(count), mean, variance)
            for name, (count, mean, variance) in zip(names, figures, strict=True)
        }

    @property
    def n_clipped(self) -> dict[Name, int]:
        """How many values were learnt beyond `clip`, of each feature that has any."""
        with self.lock:
            names = list(self.schema.names)
            counts = self._fitted()[N_CLIPPED, : len(names)].tolist()
        return {name: int(n) for name, n in zip(names, counts, strict=True) if n > 0}

    def replace_moments(self, names: list[Name], moments: np.ndarray) -> None:
        """Set count, mean, variance and clipped values, float64 (4, n), of features it knows."""
        with self.lock:
            columns = [self.schema.index[name] for name in names]
            self._fitted()[: N_CLIPPED + 1, columns] = moments

    def is_one_hot(self, name: Name) -> bool:
        """Tell whether a feature is one-hot by its name: it is not scaled."""
        if not isinstance(name, str):
            return False
        return "=" in name or (self.one_hot is not None and bool(re.search(self.one_hot, name)))

    def _set_up(self) -> None:
        """Set the attributes that copies do not share, all of which are caches."""
        # By the names of an event, all of which are known.
        self._layouts: dict[tuple[Name, ...], Any] = {}
        self._generation = Generation()
        self._set_fast_path(None)

    def _bind_fast_path(self) -> None:
        """Bind the fast path to the statistics, if that is possible; the caller holds the lock."""
        path, schema = self._fast_path, self.schema
        if self.is_learning or (path is not None and path.is_bound_to(self._fitted())):
            # Learning binds it afterwards: this may be a signal handler in the middle of that.
            return
        # Compiled code knows one-hot names by "=" only.
        is_readable = self.one_hot is None and schema.are_simple
        if not availability.is_on() or not is_readable:
            if path is not None:
                self._generation.advance()
                self._set_fast_path(None)
            return
        if path is not None and path.is_for(schema) and path.follow(self._fitted()):
            return
        if path is None or not path.is_for(schema):
            new = ScalerFastPath(schema, self.lock, self._generation, self._limits)
            self._set_fast_path(new)
        self._fitted()
        # `bind` fails if other code uses the scaler after this, a signal handler for example.
        now = self._generation.advance()
        path = self._fast_path
        if path is not None and path.is_for(schema):
            path.bind(self._statistics, now)

    def _set_fast_path(self, path: ScalerFastPath | None) -> None:
        methods = (_fall_back, _fall_back) if path is None else (path.learn, path.transform)
        if availability.DEBUG and path is not None:
            methods = self._checked(path, methods[0]), self._checked(path, methods[1])
        # In one step, as an interruption must not leave methods of another path.
        self.__dict__.update(_fast_path=path, _event_learn=methods[0], _event_transform=methods[1])

    def _checked(self, path: ScalerFastPath, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that first compares the addresses with those of the arrays."""
        compare = weakref.WeakMethod(self._compare)

        def checked(x: Any) -> Any:
            if (compare_now := compare()) is not None:
                compare_now(path)
            return method(x)

        return checked

    def _compare(self, path: ScalerFastPath) -> None:
        with self.lock:
            path.check(self._statistics, self._generation.now)

    def _after_fork(self) -> None:
        # The path uses the address of the parent's lock, which has been replaced.
        self._generation.advance()
        self._set_fast_path(None)

    def _contents(self) -> dict[str, Any]:
        self._fitted()
        contents = super()._contents()
        for name in _NOT_COPIED:
            del contents[name]
        return contents

    def __setstate__(self, contents: dict[str, Any]) -> None:
        super().__setstate__(contents)
        self._set_up()

    def _fitted(self) -> np.ndarray:
        """Return the statistics of all features of the schema; the caller holds the lock.

        They have room for more, so that features which come one by one do not copy them each time.
        """
        while len(self.schema) > self._statistics.shape[1]:
            old, path = self._statistics, self._fast_path
            # Before copying: it closes the fast path, which would still write to the old array.
            self._generation.advance()
            wider = widened(old, len(self.schema))
            # A signal handler that used the scaler meanwhile has replaced the array already.
            if self._statistics is old:
                self._statistics = wider
            if path is not None:
                path.release()
        return self._statistics


def widened(statistics: np.ndarray, n: int) -> np.ndarray:
    """Return statistics with room for n features, however many there were before."""
    # 0, 16, 24, 40, 72, ...: with a power of two the figures of a feature, which lie so far apart,
    # would share few sets of the processor's cache.
    room = 8 + (1 << max(n - 9, 7).bit_length()) if n else 0
    return np.pad(statistics, ((0, 0), (0, room - statistics.shape[1])))


def merged(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the statistics of two sets of rows together (Chan, Golub and LeVeque, 1979).

    Both are float64 (N_ROWS, d). Recent values are not known any more: they begin anew.
    """
    out = np.zeros_like(a)
    n = out[COUNT] = a[COUNT] + b[COUNT]
    share = b[COUNT] / np.maximum(n, 1.0)
    between = b[MEAN] - a[MEAN]
    out[MEAN] = a[MEAN] + share * between
    within = (1.0 - share) * a[VARIANCE] + share * b[VARIANCE]
    out[VARIANCE] = within + share * (1.0 - share) * between**2
    out[N_CLIPPED] = a[N_CLIPPED] + b[N_CLIPPED]
    return out


def _limit(name: str, value: float | None) -> float:
    return np.inf if value is None else check_number(name, value, 1.0)


def _fall_back(x: Any) -> None:
    """Return None, which says that the event has to take the general path."""
