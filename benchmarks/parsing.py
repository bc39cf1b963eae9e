"""OSPASParser on the RoboCup commentaries of Chen and Mooney (2008): F1 of parses and of matching.

STREAMSVM_DATA=FOLDER python -m benchmarks.parsing; sportscaster*.parquet are in the folder.

Parsing (thesis, table 6.2): three games are learnt in one pass and in their order, the fourth one's
gold pairs tested: with the right meaning of each sentence (no ambiguity), or with its candidates.
Matching (appendix C.7): one game is learnt with its candidates; for each sentence of the three
others that candidate is chosen whose symbols are most like those predicted. Sentences without a
right meaning count against it, and so do those of which it is not among the candidates. Beside it a
peer that counts: symbols whose share of the sentences with a word, or a pair of words, is by a
threshold above their share without it. Last, words a second of the processor.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.golden.problems import FOLDER
from streamsvm import OSPASParser
from streamsvm.structured.parser.meanings import as_text, read_meaning, symbols_of

Rows = list[dict[str, Any]]


def splits(rows: Rows) -> Iterator[tuple[Rows, Rows]]:
    """Yield the rows of each game, and all others."""
    for game in sorted({row["game"] for row in rows}):
        yield [r for r in rows if r["game"] == game], [r for r in rows if r["game"] != game]


def f1(n_right: int, n_said: int, n_gold: int) -> tuple[float, float, float]:
    """Return F1, precision and recall."""
    return (
        2.0 * n_right / max(1, n_said + n_gold),
        n_right / max(1, n_said),
        n_right / max(1, n_gold),
    )


def parsed(train: Rows, test: Rows, is_ambiguous: bool, **parameters: Any) -> tuple[float, ...]:
    """Learn some rows, and return the scores of the parses of others."""
    model = OSPASParser(seed=0, **parameters)
    bags = [row["candidates"] if is_ambiguous else [row["gold"]] for row in train]
    model.learn_many([row["text"] for row in train], bags)
    found = [parse.meaning for parse in model.predict_many([row["text"] for row in test])]
    said = [meaning and as_text(meaning) for meaning in found]
    right = sum(text == row["gold"] for text, row in zip(said, test, strict=True))
    return f1(right, len(test) - said.count(None), len(test))


def matched(train: Rows, test: Rows, **parameters: Any) -> tuple[float, ...]:
    """Learn one game with its candidates, and return the scores of matches of others."""
    model = OSPASParser(seed=0, **parameters)
    model.learn_many([row["text"] for row in train], [row["candidates"] for row in train])
    found = [model.match_one(row["text"], row["candidates"]) for row in test]
    right = sum(m is not None and m == r["gold"] for m, r in zip(found, test, strict=True))
    n_gold = sum(row["gold"] is not None for row in test)
    return f1(right, len(test) - found.count(None), n_gold)


def counted(train: Rows, test: Rows, threshold: float) -> tuple[float, ...]:
    """Match by counts alone: symbols that are more often in bags of sentences with a word."""
    with_part, seen, both = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for row in train:
        bag = {s for text in row["candidates"] for s in symbols_of(read_meaning(text))}
        with_part.update(found := parts(row["text"]))
        seen.update(bag)
        both.update(product(found, bag))

    def lead(part: str, symbol: str) -> float:
        n = both[part, symbol]
        others = (seen[symbol] - n) / max(1, len(train) - with_part[part])
        return n / with_part[part] - others if with_part[part] > 1 else 0.0

    right = said = 0
    for row in test:
        found = parts(row["text"])
        own = {s for s in seen if max(lead(part, s) for part in found) > threshold}
        best, most = None, 0.0
        for text in row["candidates"]:
            other = set(symbols_of(read_meaning(text)))
            likeness = len(own & other) / max(1, len(own) * len(other)) ** 0.5
            if likeness > most:
                best, most = text, likeness
        said += best is not None
        right += best is not None and best == row["gold"]
    return f1(right, said, sum(row["gold"] is not None for row in test))


def parts(text: str) -> set[str]:
    """Return words and pairs of words."""
    words = text.lower().split()
    return {*words, *map(" ".join, pairwise(words))}


def speed(rows: Rows) -> None:
    """Print how many words a second are learnt, labelled and parsed."""
    sentences, bags = [r["text"].split() for r in rows], [r["candidates"] for r in rows]
    n = sum(map(len, sentences))
    model = OSPASParser(seed=0)
    for name, job in (
        ("learnt", lambda: model.learn_many(sentences, bags)),
        ("labelled with symbols", lambda: model.predict_symbols_many(sentences)),
        ("parsed", lambda: model.predict_many(sentences)),
    ):
        start = time.process_time()
        job()
        print(f"{n / (time.process_time() - start):,.0f} words a second {name}")


def main() -> None:
    events = pq.read_table(FOLDER / "sportscaster.parquet").to_pylist()
    gold = pq.read_table(FOLDER / "sportscaster_gold.parquet").to_pylist()
    for exploration in ("order_free", "random", "left_to_right"):
        one = {"exploration": exploration}
        for is_ambiguous, rows in ((False, gold), (True, events)):
            found = []
            for (test, _), (_, train) in zip(splits(gold), splits(rows), strict=True):
                found.append(parsed(train, test, is_ambiguous, **one))
            show(f"parsing, {'ambiguous' if is_ambiguous else 'unambiguous'}, {exploration}", found)
    show("matching, order_free", [matched(train, test) for train, test in splits(events)])
    for threshold in (0.2, 0.35, 0.5, 0.65):
        found = [counted(train, test, threshold) for train, test in splits(events)]
        show(f"matching by counts, from {threshold}", found)
    speed(events)


def show(name: str, found: list[tuple[float, ...]]) -> None:
    """Print mean F1, precision and recall, and the F1 of each split."""
    f, precision, recall = np.mean(found, axis=0)
    each = " ".join(f"{scores[0]:.3f}" for scores in found)
    print(f"{name}: F1 {f:.3f} (precision {precision:.3f}, recall {recall:.3f}; splits {each})")


if __name__ == "__main__":
    main()
