"""Sentences from Parquet files: what is read, and that reading goes on where it ended."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors import (
    Event,
    MissingColumnError,
    NotReadableError,
    Reject,
    SentenceSource,
)

WORDS = [["the", "dog"], [], ["barks"], None, ["a", "b"], ["cat", "sat"]]
TAGS = [["D", "N"], [], ["V"], ["N"], ["D"], ["N", "V"]]
CHUNKS = [["B", "I"], [], ["B"], ["B"], ["B", "I"], ["B", "B"]]


@pytest.fixture
def path(tmp_path):
    table = pa.table({"word": WORDS, "tag": TAGS, "chunk": CHUNKS, "n": range(6)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    return tmp_path / "a.parquet"


@pytest.fixture
def opened():
    sources = []

    def open_(*arguments):
        sources.append(SentenceSource(*arguments))
        return sources[-1]

    yield open_
    for source in sources:
        source.close()


def test_tokens_and_labels_of_each_row(path, opened):
    found = list(opened(path, ["word", "tag"], "chunk").events())
    assert [event.position.row for event in found] == list(range(6))
    assert [type(event) for event in found] == [Event] * 3 + [Reject] * 2 + [Event]
    assert found[0].x == [("the", "D"), ("dog", "N")] and found[0].y == ["B", "I"]
    assert found[1].x == [] and found[1].y == []
    assert "word: None, tag: 1" in found[3].reason and "word: 2, tag: 1" in found[4].reason
    unlabelled = list(opened(path, ["tag"]).events())
    assert unlabelled[4].x == [("D",)] and unlabelled[4].y is None


def test_only_the_sentence_with_a_text_that_is_not_utf8_is_rejected(path, opened):
    words = [["a"], [b"caf\xe9", "b"], None, ["c"]]
    items = pa.array([item and [s.encode() if isinstance(s, str) else s for s in item]
                      for item in words], pa.list_(pa.binary()))  # fmt: skip
    texts = pa.ListArray.from_arrays(
        items.offsets, items.values.view(pa.string()), mask=items.is_null()
    )
    pq.write_table(pa.table({"word": texts, "chunk": [["B"], ["B", "B"], ["B"], ["B"]]}), path)
    first, bad, null, last = opened(path, ["word"], "chunk").events()
    assert first.x == [("a",)] and last.x == [("c",)] and last.position.row == 3
    assert (bad.kind, bad.position.row) == ("not UTF-8", 1) and "caf\\xe9" in bad.reason
    assert bad.payload == str([["caf\\xe9", "b"], ["B", "B"]]) and "unequal" in null.kind


def test_only_a_sentence_of_too_many_tokens_is_rejected(path, opened):
    words = [["a"], ["b"] * 100_001, ["c"] * 100_000, None]
    table = {"word": words, "chunk": [["B"], ["B"], ["B"] * 100_000, ["B"]]}
    pq.write_table(pa.table(table), path)
    first, bad, longest, null = opened(path, ["word"], "chunk").events()
    assert first.x == [("a",)] and len(longest.x) == 100_000 and "unequal" in null.kind
    assert (bad.kind, bad.position.row) == ("too long", 1) and "100,001 tokens" in bad.reason
    assert bad.payload == str([["b"] * 100, ["B"]])


def test_a_column_that_is_there_twice_is_refused(path, opened):
    lists = pa.array([["a"]])
    pq.write_table(pa.table([lists, lists, lists], names=["word", "chunk", "word"]), path)
    with pytest.raises(NotReadableError, match="'word' is in a.parquet more than once"):
        opened(path, ["word"], "chunk")
    assert [event.x for event in opened(path, ["chunk"]).events()] == [[("a",)]]


def test_changed_letters_are_found_by_the_checksums_of_pages(path, opened):
    table = pa.table({"word": [["the", "dog"], ["barks"]]})
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(table, path, write_page_checksum=True, **plain)
    path.write_bytes(path.read_bytes().replace(b"barks", b"borks"))
    with pytest.raises(NotReadableError, match="checksum"):
        list(opened(path, ["word"]).events())


def test_columns_that_cannot_be_used(path, opened):
    with pytest.raises(MissingColumnError, match="^.?tokens `x` is not a column"):
        opened(path, ["x"])
    with pytest.raises(NotReadableError, match="a column of labels holds lists"):
        opened(path, ["word"], "n")
