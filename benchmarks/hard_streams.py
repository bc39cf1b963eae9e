"""Streams on which a default easily fails, for ``python -m benchmarks.arena --hard``.

They change in ways that suit no one learner, have runs of equal labels, few informative features,
or noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks import classes

Rows = tuple[np.ndarray, np.ndarray]


def spiral(n: int, draws: np.random.Generator) -> Rows:
    """Return two arms that grow with the stream."""
    angle = draws.uniform(0.0, 2.0 + 16.0 * np.arange(n) / n, n)
    y = draws.random(n) < 0.5
    direction = angle + np.pi * y
    x = angle[:, None] * np.stack([np.cos(direction), np.sin(direction)], axis=1)
    return x + 0.2 * draws.normal(size=x.shape), y


def easy_then_board(n: int, draws: np.random.Generator) -> Rows:
    """Return halves of a square; from 3/8 of the stream on, a chessboard."""
    x = draws.uniform(-1.0, 1.0, (n, 2))
    is_black = np.floor(3.0 * x).sum(axis=1) % 2 == 1
    return x, np.where(np.arange(n) < 3 * n // 8, x[:, 0] > 0.0, is_black)


def turns(n: int, draws: np.random.Generator) -> Rows:
    """Return two concepts, opposed on most of the square, that take turns each 600 events."""
    x = draws.uniform(-1.0, 1.0, (n, 4))
    is_first = np.arange(n) // 600 % 2 == 0
    y = np.where(is_first, x[:, 0] + x[:, 1] > 0.0, x[:, 0] ** 2 + x[:, 2] ** 2 < 0.6)
    return x, y ^ (draws.random(n) < 0.05)


def unit(n: int, draws: np.random.Generator) -> Rows:
    """Return a sphere, of which one feature has another unit from the middle on."""
    x = draws.normal(size=(n, 5))
    y = ((x**2).sum(axis=1) < 4.4) ^ (draws.random(n) < 0.05)
    x[n // 2 :, 0] *= 1000.0
    return x, y


def squares(n: int, draws: np.random.Generator) -> Rows:
    """Return points within or without of four squares that move."""
    x = draws.uniform(0.0, 1.0, (n, 2))
    at = 0.5 * (1.0 + np.sin(2.0 * np.pi * (np.arange(n) / n)[:, None] + np.arange(8)))
    near = np.abs(x[:, None, :] - at.reshape(n, 4, 2)).max(axis=2) < 0.15
    return x, near.any(axis=1)


def runs(n: int, draws: np.random.Generator) -> Rows:
    """Return labels that repeat for some 20 events, which weak features hardly tell."""
    y = np.cumsum(draws.random(n) < 1.0 / 20.0) % 2 == 1
    return draws.normal(size=(n, 5)) + 0.3 * y[:, None], y


def of_three(n: int, draws: np.random.Generator, is_sum: bool) -> Rows:
    """Return 200 features, of which a product of two, and a third one if `is_sum`, matter."""
    x = draws.normal(size=(n, 200))
    return x, x[:, 3] * x[:, 17] + (x[:, 40] if is_sum else 0.0) > 0.0


def noise(n: int, draws: np.random.Generator) -> Rows:
    """Return a sphere of 10 features; a fifth of the labels are wrong."""
    x = draws.normal(size=(n, 10))
    return x, ((x**2).sum(axis=1) < 9.3) ^ (draws.random(n) < 0.2)


def board_of_8(n: int, draws: np.random.Generator) -> Rows:
    """Return a board of 36 fields of 8 colours, and two features that do not matter."""
    x = draws.uniform(0.0, 1.0, (n, 4))
    colours = draws.integers(0, 8, (6, 6))
    i, j = np.floor(6.0 * x[:, :2]).astype(int).T
    return x, colours[i, j]


def xor(n: int, draws: np.random.Generator) -> Rows:
    """Return 8 features, of which the signs of three matter together."""
    x = draws.uniform(-1.0, 1.0, (n, 8))
    return x, ((x[:, :3] > 0.0).sum(axis=1) % 2 == 1) ^ (draws.random(n) < 0.03)


def boxes(n: int, draws: np.random.Generator) -> Rows:
    """Return points within or without of 12 boxes in four of 8 features."""
    x, low = draws.uniform(-1.0, 1.0, (n, 8)), draws.uniform(-1.0, 0.4, (12, 4))
    inner = (x[:, None, :4] >= low) & (x[:, None, :4] <= low + draws.uniform(0.5, 1.2, (12, 4)))
    return x, inner.all(axis=2).any(axis=1) ^ (draws.random(n) < 0.03)


def heavy_tails(n: int, draws: np.random.Generator) -> Rows:
    """Return features of which some are far, and a border between logarithms."""
    x = draws.standard_t(1.5, (n, 6))
    logs = np.log1p(np.abs(x))
    return x, (np.sign(x[:, 0]) * logs[:, 0] > logs[:, 2] - 0.5) ^ (draws.random(n) < 0.03)


def rules(n: int, draws: np.random.Generator) -> Rows:
    """Return the leaves of a random tree of depth 6."""
    x, node = draws.uniform(-1.0, 1.0, (n, 8)), np.zeros(n, np.int64)
    which, cut = draws.integers(0, 6, 63), draws.uniform(-0.6, 0.6, 63)
    for _ in range(6):
        node = 2 * node + 1 + (x[np.arange(n), which[node]] > cut[node])
    return x, (draws.random(64) < 0.5)[node - 63] ^ (draws.random(n) < 0.03)


def turning(n: int, draws: np.random.Generator, period: float) -> Rows:
    """Return a linear border that turns once in some 6 periods."""
    x, angle = draws.normal(size=(n, 10)), np.arange(n) / period
    margin = np.cos(angle) * x[:, 0] + np.sin(angle) * x[:, 1] + 0.2 * draws.normal(size=n)
    return x, margin > 0.0


def rare(n: int, draws: np.random.Generator, share: float) -> Rows:
    """Return two Gaussians, of which one is rare and moves."""
    y = draws.random(n) < share
    at = 2.0 * np.stack([np.cos(np.arange(n) / 4000.0), np.sin(np.arange(n) / 4000.0)], axis=1)
    x = draws.normal(size=(n, 6))
    x[:, :2] += y[:, None] * at
    return x, y


def unequal_variances(n: int, draws: np.random.Generator) -> Rows:
    """Return two classes of one mean, which differ in the variances of 8 features."""
    y, wide = draws.random(n) < 0.5, np.where(np.arange(8) % 2, 2.5, 0.7)
    return draws.normal(size=(n, 8)) * np.where(y[:, None], wide, wide[::-1]), y


def _of_classes(name: str, n: int, draws: np.random.Generator) -> Rows:
    x, y = classes.OVERLAPPING[name](1)
    return x[:n], y[:n]


STREAMS: dict[str, Callable[[int, np.random.Generator], Rows]] = {
    "spiral": spiral,
    "easy, then chessboard": easy_then_board,
    "turns of 600": turns,
    "unit changes": unit,
    "moving squares": squares,
    "label runs": runs,
    "3 of 200, sum": partial(of_three, is_sum=True),
    "2 of 200, sign of product": partial(of_three, is_sum=False),
    "noise": noise,
    "chessboard, 8 colours": board_of_8,
    "xor of three": xor,
    "boxes": boxes,
    "heavy tails": heavy_tails,
    "rules": rules,
    "turning": partial(turning, period=400.0),
    "turning slowly": partial(turning, period=2000.0),
    "1 of 20": partial(rare, share=1.0 / 20.0),
    "1 of 200": partial(rare, share=1.0 / 200.0),
    "unequal variances": unequal_variances,
    **{name: partial(_of_classes, name) for name in ("30 Gaussians", "rings, 40 % noise")},
}


def streams(n: int) -> Iterator[tuple[str, Callable[[], list[tuple[dict[Any, Any], Any]]]]]:
    """Yield the names of the streams, and functions that make their first n events."""

    def events(make: Callable[[int, np.random.Generator], Rows]) -> Any:
        x, y = make(n, np.random.default_rng(1))
        rows = (dict(enumerate(row)) for row in np.asarray(x, np.float32).tolist())
        return list(zip(rows, y.tolist(), strict=True))

    for name, make in STREAMS.items():
        yield name, partial(events, make)
