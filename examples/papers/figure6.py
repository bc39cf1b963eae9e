"""Figure 6 of Usunier, Bordes and Bottou (2010): test error against kernel values, on MNIST 8.

Algorithm 1 (K = 10 and 100, random and active selection) and its batch counterpart: all examples
are there from the start, and coordinate steps are made on uniformly drawn ones. Kernel values are
counted as with a cache that forgets nothing: once a pair. Active selection pays for its pools. To
expect: the batch solver needs by far the most kernel values for the same error.
"""

import common
import numpy as np

POINTS = 12


class Batch:
    """Coordinate steps on uniformly drawn examples of a fixed set, by equation (3)."""

    def __init__(self, problem: common.Problem, seed: int) -> None:
        self.x, self.C = problem.x, problem.C
        self.y = np.where(problem.y, 1.0, -1.0)
        self.squares = np.einsum("ij,ij->i", self.x, self.x)
        self.f = np.zeros(len(self.y))
        self.a = np.zeros(len(self.y))
        self.support: list[int] = []  # in the order in which they came
        self.is_support = np.zeros(len(self.y), bool)
        self.known = np.zeros(len(self.y), int)  # of how many of them k(x_i, .) is known
        self.n_values = 0
        self.rng = np.random.default_rng(seed)

    def row(self, x: np.ndarray, square: float, rows: np.ndarray, squares: np.ndarray):
        distance = np.maximum(squares + square - 2.0 * (rows @ x), 0.0)
        return np.exp(-common.KERNEL.gamma * distance)

    def step(self) -> None:
        i = int(self.rng.integers(len(self.y)))
        self.n_values += len(self.support) - self.known[i]
        self.known[i] = len(self.support)
        g = 1.0 - self.y[i] * self.f[i]
        step = max(-self.a[i], min(self.C - self.a[i], g))
        if step == 0.0:
            return
        if not self.is_support[i]:
            self.is_support[i] = True
            self.support.append(i)
        # All f are kept up to date to save time here; what a solver without that needs is counted.
        self.f += step * self.y[i] * self.row(self.x[i], self.squares[i], self.x, self.squares)
        self.a[i] += step

    def error(self, problem: common.Problem) -> float:
        s = np.flatnonzero(self.a)
        squares = np.einsum("ij,ij->i", problem.x_test, problem.x_test)
        distance = squares[:, None] + self.squares[s] - 2.0 * problem.x_test @ self.x[s].T
        f = np.exp(-common.KERNEL.gamma * np.maximum(distance, 0.0)) @ (self.a[s] * self.y[s])
        return 100 * float(np.mean((f > 0) != problem.y_test))


def main() -> None:
    options = common.options(__doc__, limit=6000)
    problem = common.shuffled(common.mnist_8(options.data), 0, options.limit)
    n = len(problem.y)
    every = max(1, n // POINTS)
    curves, rows = {}, []
    for active in (False, True):
        for K in (10, 100):
            model = common.new_model(problem, K, False, 0)
            values, errors = [], []
            for _, spent in common.stream(model, problem, active, 0, every):
                values.append(model.counters["kernel_values"] + spent)
                errors.append(common.error(model, problem))
            curves[f"{'active' if active else 'random'}, K = {K}"] = (values, errors)
    batch, values, errors = Batch(problem, 0), [], []
    for _ in range(POINTS):
        for _ in range(n // 4):
            batch.step()
        values.append(batch.n_values)
        errors.append(batch.error(problem))
    curves["batch"] = (values, errors)
    common.plot(
        options.out / "figure6.png",
        curves,
        "kernel values",
        "test error in %",
        log="xy",
        points=True,
    )
    target = 1.1 * min(errors[-1], *(ys[-1] for _, ys in curves.values()))
    for name, (xs, ys) in curves.items():
        reached = [x for x, y in zip(xs, ys, strict=True) if y <= 2.0 * target]
        first = f"{reached[0]:,}" if reached else "never"
        rows.append([name, f"{xs[-1]:,}", f"{ys[-1]:.2f}", first])
    head = ["", "kernel values", "error at the end %", f"values until {2 * target:.2f} %"]
    common.table(options.out / "figure6.md", head, rows)


if __name__ == "__main__":
    main()
