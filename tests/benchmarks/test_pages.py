"""The pages show the results that are kept, and results of different code are refused."""

import json

import pytest

pytest.importorskip("sklearn", reason="pip install scikit-learn")

from benchmarks.pages import __main__ as pages
from benchmarks.pages import blocks, kept
from benchmarks.pages.sections import SECTIONS, Section

BLOCKS = [(name, page, mark) for name, section in SECTIONS.items() for page, mark in section.blocks]


@pytest.mark.parametrize(("name", "page", "mark"), BLOCKS, ids=str)
def test_pages_show_the_results_that_are_kept(name, page, mark):
    section, results = SECTIONS[name], kept.read(name)
    if not section.items.keys() <= results.keys():
        pytest.skip("not all was measured yet")
    found = {item: results[item]["found"] for item in section.items}
    assert blocks.shown(page, mark) == list(section.blocks[page, mark](found))


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A section of two items, and a page."""
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    monkeypatch.setattr(blocks, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("before\n<!-- toy: command -->\nold\n<!-- /toy -->\nafter\n")
    items = {"a": lambda quick: 1, "b": lambda quick: 2}
    section = Section(items, {("page.md", "toy"): lambda found: [str(found)]}, False, 1)
    monkeypatch.setattr(pages, "SECTIONS", {"toy": section})
    code = {"commit": "one", "streamsvm": "x", "connectors": "y"}
    monkeypatch.setattr(kept, "code_now", lambda: dict(code))
    return code


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["pages", *arguments])
    return pages.main()


def test_results_of_different_code_are_refused(toy, tmp_path, monkeypatch, capsys):
    assert run(monkeypatch) == 0
    new = "before\n<!-- toy: command -->\n{'a': 1, 'b': 2}\n<!-- /toy -->\nafter\n"
    assert (tmp_path / "page.md").read_text() == new
    # Another commit that leaves the measured folders as they are changes nothing.
    toy["commit"] = "two"
    assert run(monkeypatch) == 0
    toy["streamsvm"] = "z"
    assert run(monkeypatch, "--item", "a") == 0
    assert run(monkeypatch, "--write") == 1
    said = capsys.readouterr().err
    assert "results of 2 different versions of the code" in said and "toy: a (two)" in said
    assert run(monkeypatch) == 0
    assert {one["code"]["streamsvm"] for one in kept.read("toy").values()} == {"z"}


def test_what_was_never_measured_and_what_is_not_committed_are_refused(toy, monkeypatch, capsys):
    assert run(monkeypatch, "--write") == 1
    assert "toy: a was never measured" in capsys.readouterr().err

    def changed():
        raise kept.MixedError("commit first")

    monkeypatch.setattr(kept, "code_now", changed)
    assert run(monkeypatch) == 1
    assert json.dumps(kept.read("toy")) == "{}"


def test_examples_write_what_they_print(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "ROOT", tmp_path)
    (tmp_path / "examples" / "data").mkdir(parents=True)
    text = "```python\nprint(1 + 1)\n```\n\n```text\n{}\n```\n\n```python\nx = 1\n```\nend\n"
    (tmp_path / "page.md").write_text(text.format(3))
    assert blocks.run_examples("page.md") == 1
    assert (tmp_path / "page.md").read_text() == text.format(2)
