"""What the build of the site does not check: the navigation, and links that leave the folder."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}


def test_the_navigation_names_every_page_once():
    configuration = (ROOT / "mkdocs.yml").read_text()
    named = re.findall(r"^ +- [^:]+: (\S+\.md)$", configuration, re.MULTILINE)
    assert sorted(named) == sorted(PAGES)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links_stay_in_the_folder(page):
    text = re.sub(r"```.*?```", "", (DOCS / page).read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:|#", link):
            target = (DOCS / page).parent / link.partition("#")[0]
            assert target.resolve().is_relative_to(DOCS) and target.exists(), link
