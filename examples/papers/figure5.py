"""Figure 5 of Usunier, Bordes and Bottou (2010): test error over the first examples of MNIST 8.

Algorithm 1, random and active selection (a pool of 50), K = 10 and 100. Expected: active selection
needs far fewer examples for the same error, and the more accurate tracker (K = 100) gains more.
"""

import numpy as np
import replication


def main() -> None:
    options = replication.options(__doc__, limit=3000)
    whole = replication.mnist_8(options.data)
    n = min(options.limit or len(whole.y), len(whole.y))
    every = max(1, n // 12)
    curves, rows = {}, []
    for active in (False, True):
        for K in (10, 100):
            errors = []
            for seed in range(options.runs):
                problem = replication.shuffled(whole, seed, None)
                model = replication.new_model(problem, K, False, seed)
                taken = []
                for t, _ in replication.stream(model, problem, active, seed, every):
                    taken.append(replication.error(model, problem))
                    if t + every > n:
                        break
                errors.append(taken)
            mean = np.mean(errors, axis=0)
            name = f"{'active' if active else 'random'}, K = {K}"
            curves[name] = (every * np.arange(1, len(mean) + 1), mean)
            quarters = [f"{mean[(i + 1) * len(mean) // 4 - 1]:.2f}" for i in range(4)]
            rows.append([name, *quarters, model.n_support_vectors])
    replication.plot(options.out / "figure5.png", curves, "examples", "test error in %", log="y")
    head = ["", *(f"error at {(i + 1) * n // 4:,}" for i in range(4)), "support vectors"]
    replication.table(options.out / "figure5.md", head, rows)


if __name__ == "__main__":
    main()
