"""You learn how to label a stream with a tenth of its labels, and what the other labels would add.

Accuracy, of all events, by the share of labels asked for, of the least certain events and of events
drawn at random: a table, and a plot, labels.png. Means of five orders of River's Phishing (1,250
events), or of a Parquet file in its own order: ``--data FILE --target COLUMN``, the first
``--limit`` rows.
"""

import argparse
import itertools
from typing import Any

from river import datasets, stream

from connectors import ParquetSource
from streamsvm import ActiveLearner, AdaptiveSVMClassifier

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4)
STRATEGIES = ("quantile", "random")


def accuracy(events: list[Any], share: float, strategy: str = "quantile") -> float:
    """Return the accuracy on all events, each predicted before its label may be asked for."""
    model = ActiveLearner(AdaptiveSVMClassifier(seed=1), share, strategy, seed=1)
    right = 0
    for x, y in events:
        predicted, ask = model.predict_one(x)
        right += predicted == y
        if ask:
            model.learn_one(x, y)  # here a person would be asked
    return 100 * right / len(events)


def orders(options: argparse.Namespace) -> list[list[Any]]:
    """Return the stream, or several orders of it."""
    if options.data is None:
        events = list(datasets.Phishing())
        return [list(stream.shuffle(events, len(events), seed=seed)) for seed in range(5)]
    with ParquetSource(options.data, target=options.target) as source:
        events = itertools.islice(source.events(), options.limit)
        return [[(event.x, event.y) for event in events]]


def plot(found: dict[str, list[float]], all_labels: float) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for strategy, values in found.items():
        axes.plot([100 * share for share in SHARES], values, "o-", label=strategy)
    axes.axhline(all_labels, color="gray", linestyle="--", label="all labels")
    axes.set(xlabel="% of the labels asked for", ylabel="accuracy in %", xscale="log")
    axes.set_xticks([100 * share for share in SHARES], [f"{100 * share:g}" for share in SHARES])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig("labels.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="Parquet file")
    parser.add_argument("--target", default="label", help="the column of labels")
    parser.add_argument("--limit", type=int, default=10_000, help="rows of the file")
    streams = orders(parser.parse_args())

    def mean(share: float, strategy: str = "quantile") -> float:
        return sum(accuracy(events, share, strategy) for events in streams) / len(streams)

    found: dict[str, list[float]] = {strategy: [] for strategy in STRATEGIES}
    print("labels  quantile  random")
    for share in SHARES:
        for strategy, values in found.items():
            values.append(mean(share, strategy))
        print(f"{share:>6.0%}" + "".join(f"  {values[-1]:>6.1f} %" for values in found.values()))
    all_labels = mean(1.0)
    print(f"{1:>6.0%}  {all_labels:>6.1f} %")
    plot(found, all_labels)


if __name__ == "__main__":
    main()
