"""Text columns that should not be learnt as categories are named, with what to do."""

import pyarrow as pa
import pytest

from connectors.text_looks import TextLooks

N = 200
COLUMNS = {
    "price": ([str(i / 4) if i % 10 else "?" for i in range(N)], "missing_tokens=['?']"),
    "age": ([str(i % 70) if i % 40 else "999?" for i in range(N)], "missing_tokens=['999?']"),
    "part": ([f"{i},5" for i in range(N)], "decimal comma"),
    "sum": ([f"{1 + i % 9},{100 + i}" for i in range(N)], "with a comma"),
    "weight": ([f"{i} kg" for i in range(N)], "with a unit"),
    "cost": ([f"${i}.50" for i in range(N)], "with a unit"),
    "euros": ([f"EUR {i}" for i in range(N)], "with a unit"),
    "balance": ([f"({i})" if i % 3 else str(i) for i in range(N)], "as people write them"),
    "minus": ([f"\u2212{i}.5" for i in range(N)], "as people write them"),
    "swiss": ([f"{1 + i}'000" for i in range(N)], "as people write them"),
    "space": ([f"{1 + i}\u202f500,5" for i in range(N)], "as people write them"),
    "clock": ([f"{i % 24}h{i % 60:02}" for i in range(N)], "times of day"),
    "limit": ([f"<0.{i % 9}" if i % 3 else str(i) for i in range(N)], "behind a sign"),
    "digest": ([hex(i) for i in range(N)], "hexadecimal"),
    "name": ([f"Mr {i} of {i}" for i in range(N)], "200 of its first 200 texts are different"),
}
SILENT = {
    "colour": ["red", "blue", "green", "?"] * 50,
    "seat": [f"{i % 30}{'ABCDEF'[i % 6]}" for i in range(N)],
    "code": ["007", "12", "A1", "0x1F"] * 50,
    "mostly codes": (["007", "008", "010", "A1"] * 50),
    "types": ["TYP1", "TYP2", "TYP3", "A(1)"] * 50,
    "numbers": [str(i) for i in range(N)],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_what_looks_like_no_category_is_named(name):
    texts, words = COLUMNS[name]
    by_column, one_by_one = TextLooks(), TextLooks(needs_parsing=False)
    by_column.look(pa.record_batch({name: texts}), [name])
    for text in texts:
        one_by_one.look_at({name: text})
    (found,) = by_column.findings
    assert found.startswith(f"{name} is learnt as categories") and words in found
    assert ("parse_numbers" in found) == ("missing_tokens" in words)
    assert one_by_one.findings[0] == found.replace(
        f" with parse_numbers=['{name}'] (--parse-numbers {name})", ""
    )


def test_categories_and_numbers_are_not():
    looks = TextLooks()
    looks.look(pa.record_batch(SILENT), SILENT)
    assert looks.findings == [] and looks.names == ["numbers"]
