"""You learn how to find wrong labels with an exact SVM, and how many are among the first looked at.

Labels of 5 % of the examples are turned. Then examples are looked at in some order, those on the
wrong side first, and the table tells how many of the turned ones are among the first 5, 10 and
20 %: of River's Bananas, or of a Parquet file with two classes, such as Adult with one column for
each value: ``--data FILE --target COLUMN``. Means of several draws. With scikit-learn the margins
of an SVC are shown, too: cross-validated in ten parts, and with ``--refit`` fitted without each
support vector.
"""

import argparse
import itertools
import random
import time
from collections.abc import Callable
from typing import Any

from river import datasets

from connectors import ParquetSource
from streamsvm import IncrementalSVMClassifier, kernels

LOOKS = (0.05, 0.1, 0.2)
TURNED = 0.05


class Case:
    """Events of which some labels are turned, and a model that has learnt them."""

    def __init__(self, events: list[Any], options: argparse.Namespace, seed: int) -> None:
        draws = random.Random(seed)
        events = draws.sample(events, min(options.limit, len(events)))
        first, second = sorted({y for _, y in events})
        self.n, self.numbers = len(events), range(1, len(events) + 1)
        self.turned = set(draws.sample(self.numbers, int(TURNED * self.n)))
        self.other = {first: second, second: first}
        self.events = [
            (x, self.other[y] if number in self.turned else y)
            for number, (x, y) in enumerate(events, 1)
        ]
        kernel = kernels.RBF(gamma=options.gamma) if options.gamma else None
        self.model, self.draws = IncrementalSVMClassifier(kernel, C=options.C), draws
        for x, y in self.events:
            self.model.learn_one(x, y)

    def order(self, suspicion: dict[int, float]) -> list[int]:
        """Return the numbers of all examples, the lowest value first, those without one last."""
        return sorted(self.numbers, key=lambda number: suspicion.get(number, float("inf")))


def by_influence(case: Case, value: Callable[[Any], float]) -> list[int]:
    return case.order({n: value(one) for n, one in case.model.influence().items()})


def by_leave_one_out(case: Case) -> list[int]:
    found = case.model.leave_one_out()
    return case.order(dict(zip(found.ids.tolist(), found.margins.tolist(), strict=True)))


def svc_orders(case: Case, is_refitted: bool) -> dict[str, Callable[[], list[int]]]:
    """Return ways of scikit-learn's, if it is installed."""
    try:
        import numpy as np
        from sklearn.model_selection import cross_val_predict
        from sklearn.svm import SVC
    except ImportError:
        return {}
    names = case.model.feature_names
    x = np.array([[float(row.get(name, 0.0)) for name in names] for row, _ in case.events])
    y = np.array([label for _, label in case.events])
    signs = np.where(y == max(case.other), 1.0, -1.0)
    svc = SVC(C=case.model.C, gamma=case.model.kernel_.gamma)

    def ordered(margins: Any) -> list[int]:
        return case.order(dict(zip(case.numbers, margins.tolist(), strict=True)))

    def cross_validated() -> list[int]:
        return ordered(signs * cross_val_predict(svc, x, y, cv=10, method="decision_function"))

    def refitted() -> list[int]:
        margins = signs * svc.fit(x, y).decision_function(x)
        for i in svc.support_.copy():
            others = np.arange(case.n) != i
            margins[i] = signs[i] * svc.fit(x[others], y[others]).decision_function(x[i : i + 1])[0]
        return ordered(margins)

    found = {"SVC, cross-validated": cross_validated}
    return found | ({"SVC, without each": refitted} if is_refitted else {})


def orders(case: Case, is_refitted: bool) -> dict[str, Callable[[], list[int]]]:
    """Return the ways of ordering the examples by name."""
    found = {
        "chance": lambda: case.draws.sample(case.numbers, case.n),
        "margin": lambda: by_influence(case, lambda one: one.margin),
        "margin_without": lambda: by_influence(case, lambda one: one.margin_without),
        "objective": lambda: by_influence(case, lambda one: -one.objective),
        "leave_one_out": lambda: by_leave_one_out(case),
    }
    return found | svc_orders(case, is_refitted)


def measured(case: Case, way: Callable[[], list[int]]) -> list[float]:
    """Return the % found among the first, for each share looked at, and the seconds."""
    start = time.process_time()
    looked = way()
    seconds = time.process_time() - start
    found = [case.turned.intersection(looked[: int(share * case.n)]) for share in LOOKS]
    return [*(100 * len(some) / len(case.turned) for some in found), seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="Parquet file")
    parser.add_argument("--target", default="label", help="the column of labels")
    parser.add_argument("--limit", type=int, default=1000, help="so many rows are drawn")
    parser.add_argument("--gamma", type=float, help="default: it follows the data")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--refit", action="store_true", help="fit an SVC without each example")
    options = parser.parse_args()
    if options.data is None:
        events = list(datasets.Bananas())
    else:
        with ParquetSource(options.data, target=options.target) as source:
            events = [(event.x, event.y) for event in itertools.islice(source.events(), 50_000)]

    sums: dict[str, list[float]] = {}
    for seed in range(options.draws):
        case = Case(events, options, seed)
        for name, way in orders(case, options.refit).items():
            figures = measured(case, way)
            sums[name] = [a + b for a, b in zip(sums.get(name, [0.0] * 4), figures, strict=True)]
    print(f"{len(case.turned)} of {case.n} labels are wrong: % found among the first")
    print("order                " + "".join(f"{share:>8.0%}" for share in LOOKS) + "   seconds")
    for name, values in sums.items():
        *shares, seconds = (value / options.draws for value in values)
        print(f"{name:21}" + "".join(f"{share:>8.0f}" for share in shares) + f"{seconds:>10.3f}")


if __name__ == "__main__":
    main()
