"""Figure 6 of Usunier, Bordes and Bottou (2010): test error against kernel values, on MNIST 8.

Algorithm 1 (K = 10 and 100, random and active selection) and its batch counterpart, which has all
examples from the start and makes coordinate steps on uniformly drawn ones. Each kernel value is
counted once, as with a large cache; those of the active teacher's pools (50 examples each) are
counted apart. Expected: for the same error the batch solver needs the most kernel values, the
learner under active selection the fewest.
"""

import numpy as np
import replication

POINTS = 12


class Batch:
    """Coordinate steps on uniformly drawn examples of a fixed set, by equation (3)."""

    def __init__(self, problem: replication.Problem, seed: int) -> None:
        self.x, self.C = problem.x, problem.C
        self.y = np.where(problem.y, 1.0, -1.0)
        self.squares = np.einsum("ij,ij->i", self.x, self.x)
        self.f = np.zeros(len(self.y))
        self.a = np.zeros(len(self.y))
        self.support: list[int] = []  # in the order in which they came
        self.is_support = np.zeros(len(self.y), bool)
        self.known = np.zeros(len(self.y), int)  # of how many support vectors k(x_i, .) is known
        self.n_values = 0
        self.rng = np.random.default_rng(seed)

    def row(self, x: np.ndarray, square: float, rows: np.ndarray, squares: np.ndarray):
        distance = np.maximum(squares + square - 2.0 * (rows @ x), 0.0)
        return np.exp(-replication.KERNEL.gamma * distance)

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
        # Updating all f saves time here; only kernel values that a solver needs are counted.
        self.f += step * self.y[i] * self.row(self.x[i], self.squares[i], self.x, self.squares)
        self.a[i] += step

    def error(self, problem: replication.Problem) -> float:
        s = np.flatnonzero(self.a)
        squares = np.einsum("ij,ij->i", problem.x_test, problem.x_test)
        distance = squares[:, None] + self.squares[s] - 2.0 * problem.x_test @ self.x[s].T
        f = np.exp(-replication.KERNEL.gamma * np.maximum(distance, 0.0)) @ (self.a[s] * self.y[s])
        return 100 * float(np.mean((f > 0) != problem.y_test))


def online(problem: replication.Problem, K: int, active: bool, every: int):
    """Return lists along one pass: kernel values, those of the teacher, test errors."""
    model = replication.new_model(problem, K, False, 0)
    values, teacher, errors = [], [], []
    for _, spent in replication.stream(model, problem, active, 0, every):
        values.append(model.counters["kernel_values"])
        teacher.append(spent)
        errors.append(replication.error(model, problem))
    return values, teacher, errors


def batch(problem: replication.Problem, epochs: int):
    """Return the same for the batch solver, at numbers of steps that grow geometrically."""
    solver, n = Batch(problem, 0), len(problem.y)
    values, errors, made = [], [], 0
    for steps in np.geomspace(n / 16, epochs * n, POINTS).astype(int):
        for _ in range(steps - made):
            solver.step()
        made = steps
        values.append(solver.n_values)
        errors.append(solver.error(problem))
    return values, [0] * POINTS, errors


def main() -> None:
    options = replication.options(__doc__, limit=10000)
    problem = replication.shuffled(replication.mnist_8(options.data), 0, options.limit)
    every = max(1, len(problem.y) // (2 * POINTS))
    runs = {
        f"{'active' if active else 'random'}, K = {K}": online(problem, K, active, every)
        for active in (False, True)
        for K in (10, 100)
    }
    runs["batch"] = batch(problem, 20)
    curves = {name: (values, errors) for name, (values, _, errors) in runs.items()}
    path = options.out / "figure6.png"
    replication.plot(path, curves, "kernel values", "test error in %", log="xy", points=True)
    target = 1.2 * max(min(errors) for _, _, errors in runs.values())
    rows = []
    for name, (values, teacher, errors) in runs.items():
        at = next(i for i, error in enumerate(errors) if error <= target)
        cells = [f"{values[-1]:,}", f"{errors[-1]:.2f}", f"{values[at]:,}", f"{teacher[at]:,}"]
        rows.append([name, *cells])
    head = ["", "kernel values", "error at the end %", f"until {target:.2f} %", "and the teacher's"]
    replication.table(options.out / "figure6.md", head, rows)


if __name__ == "__main__":
    main()
