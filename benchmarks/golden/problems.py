"""The papers' problems on real data, read from ``../shared/data`` beside the repository if there.

``STREAMSVM_DATA`` names another folder with the same files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from river.datasets import synth

from streamsvm import kernels

FOLDER = Path(
    os.environ.get("STREAMSVM_DATA", Path(__file__).resolve().parents[2] / ".." / "shared" / "data")
)


class Problem(NamedTuple):
    """A training and a test set with the papers' parameters."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    kernel: kernels.RBF
    C: float


def _read(name: str) -> tuple[np.ndarray, np.ndarray]:
    table = pq.read_table(FOLDER / f"{name}.parquet")
    y = np.array(table.column("label").to_pylist())
    columns = [table.column(c).to_numpy() for c in table.column_names if c != "label"]
    return np.stack(columns, axis=1).astype(np.float32), y


def _split(x: np.ndarray, y: np.ndarray, n: int) -> tuple[np.ndarray, ...]:
    return x[:n], y[:n], x[n:], y[n:]


def banana() -> Problem:
    """4,000 / 1,300 of a random permutation, as in the papers."""
    x, y = _read("banana")
    order = np.random.default_rng(0).permutation(len(y))
    return Problem(*_split(x[order], y[order], 4000), kernels.RBF(gamma=0.5), 316.0)


def waveform() -> Problem:
    """River's generator, class 0 against the rest: another draw than the papers'."""
    rows = [(list(x.values()), y == 0) for x, y in synth.Waveform(seed=1).take(5000)]
    x = np.array([values for values, _ in rows], np.float32)
    y = np.array([label for _, label in rows])
    return Problem(*_split(x, y, 4000), kernels.RBF(gamma=0.05), 1.0)


def usps() -> Problem:
    """Digit 0 against the rest, rows of norm at most 1."""
    (x, y), (x_test, y_test) = _read("usps_train"), _read("usps_test")
    return Problem(x / 16, y == 0, x_test / 16, y_test == 0, kernels.RBF(gamma=2.0), 1000.0)


def elec2(n: int | None = None) -> Problem:
    """Electricity prices in their order, which drift; the last 5,000 rows are the test part."""
    table = pq.read_table(FOLDER / "elec2.parquet")
    numeric = [f for f in table.schema if f.name != "label" and pa.types.is_floating(f.type)]
    x = np.stack([table.column(f.name).to_numpy() for f in numeric], axis=1).astype(np.float32)
    y = np.array(table.column("label").to_pylist())
    x, y = (x - x.mean(axis=0)) / x.std(axis=0), y == y[0]
    return Problem(x[:-5000][:n], y[:-5000][:n], x[-5000:], y[-5000:], kernels.RBF(gamma=0.1), 1.0)


def adult(C: float = 1.0, n: int | None = None) -> Problem:
    """Adult as binarised by Platt."""
    (x, y), (x_test, y_test) = _read("adult_train"), _read("adult_test")
    return Problem(x[:n], y[:n] > 0, x_test, y_test > 0, kernels.RBF(gamma=0.005), C)


def adult_100() -> Problem:
    """Adult at the papers' C."""
    return adult(100.0)


def mnist_8() -> Problem:
    """Digit 8 against the rest."""
    (x, y), (x_test, y_test) = _read("mnist_train"), _read("mnist_test")
    return Problem(x / 255, y == 8, x_test / 255, y_test == 8, kernels.RBF(gamma=0.005), 1000.0)


def letter() -> Problem:
    """26 letters, features standardised: not the papers' problem, where they are as they come."""
    (x, y), (x_test, y_test) = _read("letter_train"), _read("letter_test")
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    x, x_test = (x - mean) / deviation, (x_test - mean) / deviation
    return Problem(x, y, x_test, y_test, kernels.RBF(gamma=0.025), 10.0)


def usps_10() -> Problem:
    """Ten digits, values from -1 to 1."""
    (x, y), (x_test, y_test) = _read("usps_train"), _read("usps_test")
    return Problem(x, y, x_test, y_test, kernels.RBF(gamma=0.025), 10.0)


def mnist_10() -> Problem:
    """Ten digits, values from 0 to 1."""
    (x, y), (x_test, y_test) = _read("mnist_train"), _read("mnist_test")
    return Problem(x / 255, y, x_test / 255, y_test, kernels.RBF(gamma=0.005), 1000.0)
