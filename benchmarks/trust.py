"""How far to trust a model: what is promised, measured: ``python -m benchmarks.trust PART``.

Parts: ``intervals``, accuracies with intervals that hold at all moments at once; ``sets``, sets of
labels with a coverage; ``tokens``, such sets for the tokens of sentences; ``compare``, which of two
models is better; ``selective``, answers only where few are wrong.
"""

from __future__ import annotations

import argparse

from benchmarks import (
    trust_compare,
    trust_intervals,
    trust_selective,
    trust_sets,
    trust_tokens,
)

PARTS = {
    "intervals": trust_intervals.main,
    "sets": trust_sets.main,
    "tokens": trust_tokens.main,
    "compare": trust_compare.main,
    "selective": trust_selective.main,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    options, rest = parser.parse_known_args()
    PARTS[options.part](rest)


if __name__ == "__main__":
    main()
