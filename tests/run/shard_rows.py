"""Rows of tests of shards, and the files that have them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamsvm import kernels
from streamsvm.run.shards import LocalWorkers

KERNEL = kernels.RBF(gamma=0.5)


def table_of(x):
    """Return features as a table."""
    return pa.table({f"x{c}": column for c, column in enumerate(x.T)})


def write(path, x, y, w=None, ends=None):
    """Write rows to a file; with `ends` to one for each stretch of them, which may be empty."""
    table = table_of(x).append_column("label", pa.array(y))
    if w is not None:
        table = table.append_column("w", pa.array(w))
    if ends is None:
        pq.write_table(table, path)
        return path
    path.mkdir()
    for i, (start, stop) in enumerate(zip([0, *ends], [*ends, len(y)], strict=True)):
        pq.write_table(table.slice(start, stop - start), path / f"p{i}.parquet")
    return path


def drawn(n, classes=2, seed=0):
    """Draw rows of two features whose classes overlap."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 2)).astype(np.float32)
    score = x[:, 0] + np.sin(2.0 * x[:, 1]) + 0.5 * random.normal(size=n)
    return x, np.digitize(score, np.linspace(-1.0, 1.0, classes + 1)[1:-1])


def interrupt(made):
    """End a training after its first round, as Ctrl-C does."""
    raise KeyboardInterrupt


def are_same(a, b):
    """Tell whether two learners have the same support vectors, to the last bit."""
    a, b = a.support_vectors(), b.support_vectors()
    return (a.entered == b.entered).all() and (a.coefficients == b.coefficients).all()


class Forgetful(LocalWorkers):
    """Workers that read their rows again: at each question, or once `when` says so."""

    def open(self, *given):
        self.given = given
        super().open(*given)

    def when(self, task):
        return True

    def ask(self, task, which, *given):
        if self.when(task):
            self.open(*self.given)
        yield from super().ask(task, which, *given)
