"""The common parts of the scripts in this folder: data, runs through a stream, plots and tables.

The data are Parquet files with a column ``label``: Adult (a9a, 123 binary features) and MNIST
(784 pixels), each with a train and a test part, in the folder given with ``--data``.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
import pyarrow.parquet as pq

from streamsvm import TrackingSVMClassifier, kernels

matplotlib.use("Agg")
KERNEL = kernels.RBF(gamma=0.005)
POOL = 50


class Problem(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    C: float


def options(
    doc: str,
    limit: int | None,
    names: Sequence[str] = (),
    libsvm: str = "",
    needs_data: bool = True,
) -> argparse.Namespace:
    """Read the command line that all scripts share; `names` and `libsvm` add arguments."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    about = "folder of the Parquet files" if needs_data else "not used: the data are generated"
    parser.add_argument("--data", type=Path, required=needs_data, help=about)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of plot and table")
    parser.add_argument("--runs", type=int, default=1, help="seeds to average over")
    parser.add_argument("--limit", type=int, default=limit, help="training examples")
    if names:
        about = f"data sets, all by default: {', '.join(names)}"
        parser.add_argument("names", nargs="*", choices=[[], *names], help=about, metavar="NAME")
    if libsvm:
        about = f"LIBSVM as well, through scikit-learn: {libsvm}"
        parser.add_argument("--libsvm", action="store_true", help=about)
    given = parser.parse_args()
    if names:
        given.names = given.names or list(names)
    given.out.mkdir(parents=True, exist_ok=True)
    return given


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the features of a file, float32 (rows, features), and its labels."""
    table = pq.read_table(path)
    columns = [table[name].to_numpy() for name in table.column_names if name != "label"]
    return np.stack(columns, axis=1).astype(np.float32), table["label"].to_numpy()


def adult(folder: Path) -> Problem:
    """Adult, gamma .005, C 1 (table 1 of the paper)."""
    (x, y), (x_test, y_test) = (
        read(folder / "adult_train.parquet"),
        read(folder / "adult_test.parquet"),
    )
    return Problem(x, y > 0, x_test, y_test > 0, 1.0)


def mnist_8(folder: Path) -> Problem:
    """MNIST, 8 against the rest, gamma .005, C 1000 (table 1 of the paper)."""
    (x, y), (x_test, y_test) = (
        read(folder / "mnist_train.parquet"),
        read(folder / "mnist_test.parquet"),
    )
    return Problem(x / 255, y == 8, x_test / 255, y_test == 8, 1000.0)


def shuffled(problem: Problem, seed: int, limit: int | None) -> Problem:
    """Return the problem with its training examples in a seeded random order."""
    order = np.random.default_rng(seed).permutation(len(problem.y))[:limit]
    return problem._replace(x=np.ascontiguousarray(problem.x[order]), y=problem.y[order])


def new_model(problem: Problem, K: int, process: bool, seed: int) -> TrackingSVMClassifier:
    """Return the learner of the paper: Algorithm 1, or 2 with `process`."""
    return TrackingSVMClassifier(KERNEL, problem.C, K=K, process=process, seed=seed, cache_mb=512)


def stream(model: TrackingSVMClassifier, problem: Problem, active: bool, seed: int, every: int):
    """Learn, and yield (examples seen, kernel values of the teacher) every `every` examples.

    With `active`, the teacher picks the example nearest to the boundary from a pool of 50 unseen
    ones. It needs one kernel value for each support vector and example of the pool.
    """
    rng = np.random.default_rng(seed)
    unseen = np.arange(len(problem.y))
    n_unseen, spent = len(unseen), 0
    for t in range(1, len(problem.y) + 1):
        pick = 0 if not active else rng.integers(0, n_unseen, min(POOL, n_unseen))
        if active:
            margins = np.abs(model.decision_function_many(problem.x[unseen[pick]]))
            spent += len(pick) * model.n_support_vectors
            pick = pick[np.argmin(margins)]
        i = unseen[pick]
        n_unseen -= 1
        if active:
            unseen[pick] = unseen[n_unseen]
        else:
            unseen = unseen[1:]
        model.learn_many(problem.x[i : i + 1], problem.y[i : i + 1])
        if t % every == 0:
            yield t, spent


def error(model: TrackingSVMClassifier, problem: Problem) -> float:
    """Return the test error in %."""
    return 100 * float(np.mean(model.predict_many(problem.x_test) != problem.y_test))


def plot(path: Path, curves: dict[str, tuple], x: str, y: str, log: str = "", points=False) -> None:
    """Write a plot of {label: (xs, ys)}; `log` names the logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for label, (xs, ys) in curves.items():
        axes.plot(xs, ys, "o-" if points else "-", label=label, linewidth=1.2, markersize=4)
    axes.set(xlabel=x, ylabel=y)
    axes.set(**{f"{axis}scale": "log" for axis in log})
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def table(path: Path, head: list[str], rows: list[list]) -> None:
    """Print a Markdown table, and write it to a file."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    print("\n".join(lines))
    path.write_text("\n".join(lines) + "\n")
