"""Sentences from files in columns."""

import contextlib
import io
import re
import tracemalloc
from random import Random

import pytest

from connectors import ConllSource, Reject, conll
from connectors.conll import TextLines

TEXT = "\n\nthe DT B-NP\r\ndog NN I-NP\n \nbarks VB B-VP\n\n\n\na DT O\nb  NN\tO"
SENTENCES = [
    ([["the", "DT"], ["dog", "NN"]], ["B-NP", "I-NP"]),
    ([["barks", "VB"]], ["B-VP"]),
    ([["a", "DT"], ["b", "NN"]], ["O", "O"]),
]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(TEXT.encode())
    return path


@pytest.fixture
def opened():
    """Return a function that opens a source, which is closed after the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *args, **more: stack.enter_context(ConllSource(*args, **more))


def read(source):
    return [(tokens, labels) for tokens, labels, _ in source.events()]


def test_sentences_and_positions(path):
    with ConllSource(path) as source:
        events = list(source.events())
        assert [(e.x, e.y) for e in events] == SENTENCES
        assert [e.position.row for e in events] == [0, 1, 2]
        assert list(source.events()) == [] and source.n_rows is None and source.name == str(path)
        source.rewind()
        assert read(source) == SENTENCES


def test_which_column_is_the_label(path, opened):
    assert read(opened(path, label=0))[1] == ([["VB", "B-VP"]], ["barks"])
    assert read(opened(path, label=None))[1] == ([["barks", "VB", "B-VP"]], None)
    path.write_text("a b,c,X\n")
    assert read(opened(path, separator=",")) == [([["a b", "c"]], ["X"])]


def test_a_file_that_has_grown_is_gone_on_with(path, opened):
    source = opened(path)
    next(source.events())
    snapshot = source.snapshot()
    path.write_text(TEXT + "\nlonger O\n")
    opened(path).resume(snapshot)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a B\nc d B", "line 4: 3 columns, and 2"),
        (b"c", "line 3: no column 1, there are 1"),
        (b"a B\n\xff B", r"line 4: not UTF-8: '\\\\xff B'"),
    ],
)
def test_only_the_sentence_of_a_bad_line_is_rejected(path, content, said, opened):
    path.write_bytes(b"x B\n\n" + content + b"\n\ny B\n")
    first, bad, last = opened(path, 1).events()
    assert (first.x, first.y, last.x, last.y) == ([["x"]], ["B"], [["y"]], ["B"])
    assert isinstance(bad, Reject) and re.search(said, bad.reason)
    assert (bad.position.row, last.position.row) == (1, 2)
    assert bad.payload == content.decode("utf-8", "backslashreplace")


def test_a_file_of_blank_lines_is_empty(tmp_path, opened):
    (tmp_path / "empty").write_text("\n\n")
    assert read(opened(tmp_path / "empty")) == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_as_they_do_on_any_system(path, end, opened):
    path.write_bytes(TEXT.replace("\r\n", "\n").replace("\n", end).encode())
    first, second = opened(path), opened(path)
    next(first.events())
    second.resume(first.snapshot())
    assert read(opened(path)) == SENTENCES and read(second) == SENTENCES[1:]


def test_lines_are_those_of_a_text_file_and_have_places(monkeypatch):
    random = Random(1)
    for chunk in (1, 2, 3, 7, 100):
        monkeypatch.setattr(conll, "_CHUNK", chunk)
        for _ in range(100):
            content = bytes(random.choices(b"ab\r\n", k=random.randrange(20)))
            lines = TextLines(io.BytesIO(content), 4)
            found = [(lines.byte - len(line), line) for line in lines]
            whole, place = [], 0
            for at, line in found:
                assert at == place
                place += len(line)
                joins = whole and not whole[-1].endswith((b"\r", b"\n"))
                whole[-1:] = [whole[-1] + line] if joins else [*whole[-1:], line]
            assert whole == content.splitlines(keepends=True)
            # A line in parts: each but the last is longer than the limit.
            assert all(len(a) > 4 or a.endswith((b"\r", b"\n")) for _, a in found[:-1])
            for at, _ in found:
                lines.seek(at)
                assert b"".join(lines) == content[at:]


@pytest.mark.parametrize("line", [b"word tag B\n", b"w" * 100_000])
def test_a_file_without_blank_lines_is_one_sentence_too_long(path, line, opened):
    with path.open("wb") as file:
        file.write(b"x B\n\n")
        for _ in range(150_000 if len(line) < 99 else 400):
            file.write(line)
        file.write(b"\n\ny B\n")
    source = opened(path)
    tracemalloc.start()
    first, bad, last = source.events()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert first.x == [["x"]] and last.x == [["y"]] and last.position.row == 2
    assert bad.kind == "too long" and "no blank lines?" in bad.reason
    assert len(bad.payload) < 2100 and peak < 80e6
    if len(line) < 99:
        assert "150,000 tokens" in bad.reason and bad.payload.startswith("word tag B\nword")


def test_a_sentence_of_the_greatest_length(path, opened):
    path.write_bytes(b"a B\n" * 100_000)
    (whole,) = opened(path).events()
    assert len(whole.x) == 100_000
    path.write_bytes(b"a B\n" * 100_001)
    assert isinstance(next(opened(path).events()), Reject)


def test_the_lines_that_begin_documents_are_no_sentences(path, opened):
    path.write_text("-DOCSTART- -X- O\n\na B\n\n-DOCSTART-\nb B\n-DOCSTART-x B\n")
    assert read(opened(path)) == [([["a"]], ["B"]), ([["b"], ["-DOCSTART-x"]], ["B", "B"])]
