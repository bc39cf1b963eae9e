"""The page of which learner when has the table of the results that are kept."""

import json
from pathlib import Path

from benchmarks.which_learner import table

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_has_the_table():
    found = json.loads((ROOT / "benchmarks" / "which_learner.json").read_text())
    page = (ROOT / "docs" / "which_learner.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- which -->\n")[2].partition("\n<!-- /which -->")[0]
    assert shown == table(found)
