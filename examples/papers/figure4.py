"""Figure 4 of Usunier, Bordes and Bottou (2010): the mean gap of Algorithm 1 against K, on Adult.

Corollary 4 wants K to grow like 1 / epsilon^2 for a mean gap of epsilon. Expected: in practice the
gap falls about like 1 / K (the fitted exponent is near -1).
"""

import numpy as np
import replication
from figure2 import run

KS = (1, 2, 5, 10, 20, 35, 60, 100)
EVERY = 250


def main() -> None:
    options = replication.options(__doc__, limit=10000)
    whole = replication.adult(options.data)
    every = min(EVERY, max(1, (options.limit or len(whole.y)) // 8))
    gaps, certificates = [], []
    for K in KS:
        runs = [
            run(replication.shuffled(whole, seed, options.limit), K, False, seed, every)
            for seed in range(options.runs)
        ]
        gaps.append(np.mean([r[1].mean() for r in runs]))
        certificates.append(np.mean([r[2][-1] for r in runs]))
    exponent, intercept = np.polyfit(np.log(KS), np.log(gaps), 1)
    # At K = 1 the gap is bounded by the size of the problem; the law is that of larger K.
    tail, _ = np.polyfit(np.log(KS[2:]), np.log(gaps[2:]), 1)
    fit = np.exp(intercept) * np.array(KS) ** exponent
    curves = {
        "mean gap": (KS, gaps),
        f"fit: K to the power {exponent:.2f}": (KS, fit),
        "certificate": (KS, certificates),
    }
    replication.plot(
        options.out / "figure4.png", curves, "K", "mean normalised gap", log="xy", points=True
    )
    rows = [
        [K, f"{gap:.4f}", f"{certificate:.4f}"]
        for K, gap, certificate in zip(KS, gaps, certificates, strict=True)
    ]
    rows.append(["fitted exponent", f"{exponent:.2f} (from K = {KS[2]} on: {tail:.2f})", ""])
    replication.table(options.out / "figure4.md", ["K", "mean gap", "certificate"], rows)


if __name__ == "__main__":
    main()
