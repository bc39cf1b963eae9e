"""The confusion matrix as a table in HTML; of many classes, the most frequent errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from streamsvm.support.printing import escape

_MOST_CLASSES = 20

_OF_ALL = (
    "A row has the examples of a label, a column those predicted as one, each before it "
    "was learnt. Recall is the share of a label's examples that were predicted right."
)


def confusion(pairs: Iterable[Sequence[Any]]) -> str:
    """Return a caption, and a table of (label, predicted, number of examples); empty: no examples.

    Cells have the classes h0 to h9, by their share of the examples of the label.
    """
    totals: Counter[str] = Counter()
    counts: Counter[tuple[str, str]] = Counter()
    found = list(pairs)
    names_of = told_apart([label for pair in found for label in pair[:2]])
    for (_, _, n), y, p in zip(found, names_of[::2], names_of[1::2], strict=True):
        totals[y] += n
        counts[y, p] += n
    if not counts:
        return ""
    labels = list(dict.fromkeys(name for pair in counts for name in pair))
    if len(labels) > _MOST_CLASSES:
        return _errors(totals, counts)
    names = "".join(f'<th scope="col">{escape(p)}</th>' for p in labels)
    head = f'<tr><th scope="col">label \\ predicted</th>{names}<th scope="col">recall</th></tr>'
    rows = []
    for y in filter(totals.get, labels):
        total = totals[y]
        cells = "".join(_cell(counts[y, p], total, p == y) for p in labels)
        recall = f'<td class="n">{counts[y, y] / total:.1%}</td>'
        rows.append(f'<tr><th scope="row">{escape(y)}</th>{cells}{recall}</tr>')
    return _table(_OF_ALL, head, rows)


def told_apart(labels: Sequence[Any]) -> list[str]:
    """Return labels as texts; as Python writes them, if different ones have the same text.

    >>> from streamsvm.page.confusion import told_apart
    >>> told_apart([1, "x", 1]), told_apart([1, "1"])
    (['1', 'x', '1'], ['1', "'1'"])
    """
    different = set(labels)
    are_alike = len({str(label) for label in different}) < len(different)
    texts = {label: repr(label) if are_alike else str(label) for label in different}
    return [texts[label] for label in labels]


def _cell(n: int, total: int, is_right: bool) -> str:
    kinds = f"n h{min(9, 10 * n // total)}" + (" right" if is_right else "")
    return f'<td class="{kinds}">{n:,}</td>'


def _errors(totals: Counter[str], counts: Counter[tuple[str, str]]) -> str:
    errors = [(pair, n) for pair, n in counts.most_common() if pair[0] != pair[1]]
    names = ("label", "predicted", "examples")
    head = "<tr>" + "".join(f'<th scope="col">{name}</th>' for name in names) + "</tr>"
    rows = [
        f'<tr><td>{escape(y)}</td><td>{escape(p)}</td><td class="n">{n:,}</td></tr>'
        for (y, p), n in errors[:_MOST_CLASSES]
    ]
    recalls = (f"{y} {counts[y, y] / n:.1%}" for y, n in totals.items())
    caption = f"The most frequent errors. Recall by class: {escape(', '.join(recalls))}."
    return _table(caption, head, rows)


def _table(caption: str, head: str, rows: list[str]) -> str:
    return "\n".join([f"<p>{caption}</p>", "<table>", head, *rows, "</table>"])
