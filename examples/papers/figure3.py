"""Figure 3 of Usunier, Bordes and Bottou (2010): the gap under active selection, on Adult.

Algorithm 1 with K = 10; the teacher gives random examples, or of 50 unseen ones the nearest to the
boundary of the averaged classifier. Expected: the guarantee holds for any teacher, so that neither
gap grows; under active selection it falls.
"""

import numpy as np
import replication

K = 10
EVERY = 250


def main() -> None:
    options = replication.options(__doc__, limit=None)
    whole = replication.adult(options.data)
    n = min(options.limit or len(whole.y), len(whole.y))
    every = min(EVERY, max(1, n // 8))
    curves, rows = {}, []
    for name, active in (("random", False), ("active", True)):
        gaps, certificates = [], []
        for seed in range(options.runs):
            # The pool is drawn from all examples; only so many of them are learnt.
            problem = replication.shuffled(whole, seed, None)
            model = replication.new_model(problem, K, False, seed)
            taken = []
            for t, _ in replication.stream(model, problem, active, seed, every):
                taken.append(model.duality_gap())
                if t + every > n:
                    break
            gaps.append(taken)
            certificates.append(model.certificate.value)
        mean = np.mean(gaps, axis=0)
        curves[name] = (every * np.arange(1, len(mean) + 1), mean)
        thirds = [f"{part.mean():.4f}" for part in np.array_split(mean, 3)]
        rows.append([name, *thirds, f"{mean.mean():.4f}", f"{np.mean(certificates):.4f}"])
    replication.plot(options.out / "figure3.png", curves, "examples", "normalised gap", log="y")
    head = ["selection", "gap, 1st third", "2nd", "3rd", "mean", "certificate"]
    replication.table(options.out / "figure3.md", head, rows)


if __name__ == "__main__":
    main()
