"""MNIST's digits, deformed at random without end: an SVM learns them as they are made.

L. Bottou's slides on large-scale learning make 120 random deformations of each of the 60,000
training digits; ten classifiers, one against the rest each, learn these 7,200,000 examples in about
a day each, and err .67 % on the test set. Here one LASVM holds the ten problems. The first 60,000
examples are the digits in a random order, then come the same in other orders, deformed. The model
predicts each thousand when they come, and learns those with a margin below `BELOW`; with
``--selection active`` it is given all, and chooses by itself. ``--validate 10000`` trains on the
first 50,000 digits, and measures the error on the others: so were the constants below chosen.

It writes the error by examples seen, with examples learnt, support vectors, seconds of the
processor (all but test predictions) and the memory of model and process; the last row is what
7,200,000 examples would take if all went on as it did from half of the examples on.
"""

import argparse
import math
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import replication
from scipy.ndimage import gaussian_filter

from streamsvm import LASVMClassifier, kernels
from streamsvm.selection import Active

BELOW = 0.3
"""An example is learnt if one of its ten margins y f(x) is less."""

SHIFT, ANGLE, SCALE, SHEAR = 0.7, math.radians(7.5), 0.075, 0.075
"""The most by which a digit is moved (pixels), turned, scaled and sheared."""

ELASTIC, SMOOTH, FIELDS = 0.7, 4.0, 512
"""How far pixels move elastically (root mean square, in pixels), how smoothly, by which fields."""

EDGE = 2
"""Pixels at each side that are left out: the kernel values take a quarter less time."""

PUBLISHED = 7_200_000
CHUNK = 1000


class Deformed:
    """Square images, each deformed in another way: affine, and by a sum of two smooth fields."""

    def __init__(self, side: int, seed: int) -> None:
        self.side, self.draws = side, np.random.default_rng(seed)
        edge = int(2 * SMOOTH)
        noise = self.draws.uniform(-1, 1, (FIELDS, 2, side + 2 * edge, side + 2 * edge))
        smooth = gaussian_filter(noise.astype(np.float32), (0, 0, SMOOTH, SMOOTH))
        fields = smooth[:, :, edge:-edge, edge:-edge].reshape(FIELDS, 2, side * side)
        self.fields = fields / np.sqrt(np.mean(fields**2))
        self.middle = np.float32((side - 1) / 2)
        line = np.arange(side, dtype=np.float32) - self.middle
        self.grid = np.stack([np.repeat(line, side), np.tile(line, side)])

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Return deformed copies of images, float32 (n, pixels)."""
        return self._pixels_at(images, self._places(len(images)))

    def _places(self, n: int) -> np.ndarray:
        """Return the row and the column that each pixel is taken from, float32 (n, 2, pixels)."""
        angle, shear = (self.draws.uniform(-most, most, n) for most in (ANGLE, SHEAR))
        tall, wide = self.draws.uniform(1 - SCALE, 1 + SCALE, (2, n))
        sine, cosine = np.sin(angle), np.cos(angle)
        matrix = [[cosine * tall, -sine * wide]]
        matrix += [[(sine + shear * cosine) * tall, (cosine - shear * sine) * wide]]
        places = np.moveaxis(np.array(matrix, np.float32), 2, 0) @ self.grid
        shift = self.draws.uniform(-SHIFT, SHIFT, (n, 2, 1))
        places += self.middle + shift.astype(np.float32)
        for _ in range(2):
            which = self.draws.integers(0, FIELDS, n)
            factors = self.draws.normal(0.0, ELASTIC / math.sqrt(2), (n, 1, 1))
            places += factors.astype(np.float32) * self.fields[which]
        return places

    def _pixels_at(self, images: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return what is at these places, by bilinear interpolation; 0 outside."""
        n, side, wide = len(images), self.side, self.side + 3
        padded = np.zeros((n, wide, wide), np.float32)
        padded[:, 1:-2, 1:-2] = images.reshape(n, side, side)
        flat = padded.ravel()
        places = np.clip(places, -1.0, side) + 1.0
        corner = places.astype(np.int32)
        down, right = (places - corner.astype(np.float32)).transpose(1, 0, 2)
        at = corner[:, 0] * wide + corner[:, 1] + wide**2 * np.arange(n, dtype=np.int32)[:, None]
        upper = flat[at] + right * (flat[at + 1] - flat[at])
        lower = flat[at + wide] + right * (flat[at + wide + 1] - flat[at + wide])
        return upper + down * (lower - upper)


def stream(x: np.ndarray, y: np.ndarray, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield images and labels without end, `CHUNK` at most: as they are once, then deformed."""
    draws, deformed = np.random.default_rng(seed), Deformed(math.isqrt(x.shape[1]), seed)
    epoch = 0
    while True:
        order = draws.permutation(len(y))
        for start in range(0, len(y), CHUNK):
            part = order[start : start + CHUNK]
            yield deformed(x[part]) if epoch else x[part], y[part]
        epoch += 1


def new_model(selection: str, cache_mb: float) -> LASVMClassifier:
    """Return LASVM with one problem for each class against the rest."""
    rule = Active(candidates=50, share=0.05) if selection == "active" else None
    return LASVMClassifier(
        kernels.RBF(gamma=0.025),
        C=5.0,
        multiclass="ovr",
        sparse=False,
        reserve=0,
        cache_mb=cache_mb,
        selection=rule,
    )


def is_wanted(model: LASVMClassifier, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, int]:
    """Return which examples have a margin below `BELOW`, bool (n,), and how many are wrong."""
    if len(model.classes) < 3:
        return np.ones(len(y), bool), len(y)
    classes = np.array(model.classes)
    margins = model.decision_function_many(x)
    wrong = classes[margins.argmax(axis=1)] != y
    margins = np.where(y[:, None] == classes, margins, -margins)
    return (margins.min(axis=1) < BELOW) | ~np.isin(y, classes), int(wrong.sum())


class Point(NamedTuple):
    """What was reached after `seen` examples."""

    seen: int
    learnt: int
    vectors: int
    error: float  # in %
    before: float  # in %, of the examples since the last point, before they were learnt
    seconds: float  # of the processor
    model_mb: float
    peak_mb: float  # of the process


def point(model: LASVMClassifier, data: replication.Problem, *known: float) -> Point:
    """Return a point; `known` are examples seen, error before learning, and seconds."""
    seen, before, seconds = known
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = Point(
        int(seen),
        model.n_examples,
        model.n_support_vectors,
        100 * float(np.mean(np.asarray(model.predict_many(data.x_test)) != data.y_test)),
        before,
        seconds,
        model.memory_usage / 1e6,
        peak,
    )
    print(found, file=sys.stderr, flush=True)
    return found


def run(options: argparse.Namespace, data: replication.Problem) -> list[Point]:
    """Learn the stream; return points at 50,000 examples, at every 100,000, and at the end.

    The last one is of the finished model.
    """
    model, found = new_model(options.selection, options.cache_mb), []
    stops = sorted({50_000, *range(100_000, options.limit, 100_000), options.limit})
    examples = stream(data.x, data.y, options.seed)
    seen, wrong, spent, start = 0, 0, 0.0, time.process_time()
    while seen < options.limit:
        x, y = next(examples)
        wanted, n_wrong = is_wanted(model, x, y)
        wrong += n_wrong
        if options.selection == "active":
            wanted[:] = True
        model.learn_many(np.ascontiguousarray(x[wanted]), y[wanted])
        seen += len(y)
        if seen >= stops[0]:
            spent += time.process_time() - start
            last = found[-1].seen if found else 0
            found.append(point(model, data, seen, 100 * wrong / (seen - last), spent))
            wrong, stops = 0, [stop for stop in stops if stop > seen]
            start = time.process_time()
    model.finish()
    spent += time.process_time() - start
    return [*found, point(model, data, seen, found[-1].before, spent)]


def extrapolated(found: list[Point]) -> list[str]:
    """Return a row for `PUBLISHED` examples: powers of n through the points of the last half."""
    last = [p for p in found[:-1] if p.seen >= found[-1].seen / 2]
    if len(last) < 2:
        return []
    seen = np.log([p.seen for p in last])

    def at_end(values: list[float]) -> float:
        slope, start = np.polyfit(seen, np.log(values), 1)
        return float(np.exp(start + slope * math.log(PUBLISHED)))

    learnt, vectors = at_end([p.learnt for p in last]), at_end([p.vectors for p in last])
    hours = at_end([p.seconds for p in last]) / 3600
    cells = [f"{PUBLISHED:,}, extrapolated", f"{learnt:,.0f}", f"{vectors:,.0f}"]
    return [*cells, "", "", f"{hours:.1f} h", "", ""]


def report(folder: Path, name: str, found: list[Point]) -> None:
    """Write the table and the plot."""
    rows = [
        [f"{whole:,}" for whole in p[:3]]
        + [f"{share:.2f}" for share in p[3:5]]
        + [f"{number:,.0f}" for number in p[5:]]
        for p in found
    ]
    rows[-1][0] += ", finished"
    more = extrapolated(found)
    head = ["examples seen", "learnt", "support vectors", "test error %", "error before learning %"]
    head += ["seconds", "model, MB", "peak of process, MB"]
    replication.table(folder / f"{name}.md", head, [*rows, more] if more else rows)
    *points, end = found
    curves = {"one pass": ([p.seen for p in points], [p.error for p in points])}
    curves["finished"] = ([end.seen], [end.error])
    path = folder / f"{name}.png"
    replication.plot(path, curves, "examples seen", "test error in %", log="x", points=True)


def load(folder: Path, validate: int) -> replication.Problem:
    """Return the digits as values from 0 to 1, without their outermost pixels, which are empty.

    With `validate` the last training digits, so many, are the test set.
    """
    x, y = replication.read(folder / "mnist_train.parquet")
    x_test, y_test = replication.read(folder / "mnist_test.parquet")
    if validate:
        x, y, x_test, y_test = x[:-validate], y[:-validate], x[-validate:], y[-validate:]
    return replication.Problem(inner(x), y, inner(x_test), y_test, 5.0)


def inner(x: np.ndarray) -> np.ndarray:
    """Return images without `EDGE` pixels at each side, divided by 255."""
    side = math.isqrt(x.shape[1])
    cut = x.reshape(-1, side, side)[:, EDGE : side - EDGE, EDGE : side - EDGE]
    return cut.reshape(len(x), -1) / np.float32(255)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder of the Parquet files")
    add("--out", type=Path, default=Path("."), help="folder of plot and table")
    add("--limit", type=int, default=1_000_000, help="examples of the stream")
    add("--selection", choices=["margin", "active"], default="margin")
    add("--cache-mb", type=float, default=2900.0, help="most memory for kernel values")
    add("--validate", type=int, default=0, metavar="N", help="test on the last N training digits")
    add("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    data = load(options.data, options.validate)
    small = argparse.Namespace(**vars(options) | {"limit": 300})
    run(small, data._replace(x=data.x[:300], y=data.y[:300]))  # load compiled code
    report(options.out, f"deformed_digits_{options.selection}", run(options, data))


if __name__ == "__main__":
    main()
