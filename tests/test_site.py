"""What the build of the site does not check: navigation, links that leave the folder, size."""

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


def test_every_result_is_shown_once():
    text = (DOCS / "measurements.md").read_text()
    shown = re.findall(r'^--8<-- "benchmarks/results/(\S+)"$', text, re.MULTILINE)
    assert sorted(shown) == sorted(
        path.name for path in (ROOT / "benchmarks" / "results").glob("*.md")
    )


def test_links_within_the_site_name_headings():
    anchors = {page: _anchors(_with_results((DOCS / page).read_text())) for page in PAGES}
    for page in PAGES:
        text = re.sub(r"```.*?```", "", (DOCS / page).read_text(), flags=re.DOTALL)
        for target, anchor in re.findall(r"\]\(([^)\s#:]*)#([^)\s]+)\)", text):
            path = ((DOCS / page).parent / target).resolve() if target else DOCS / page
            assert anchor in anchors[path.relative_to(DOCS).as_posix()], (page, target, anchor)


def _with_results(text):
    return re.sub(r'^--8<-- "(.*)"$', lambda m: (ROOT / m[1]).read_text(), text, flags=re.MULTILINE)


def _anchors(text):
    """Return the names that the site gives to the headings of a page."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    found = set(re.findall(r'id="([^"]+)"', text))
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower()
        name = re.sub(r"[-\s]+", "-", plain)
        found.add(name if name not in found else f"{name}_1")
    return found


MOST_BYTES = 340 * 1024


def test_the_pages_stay_small():
    size = sum((DOCS / page).stat().st_size for page in PAGES)
    assert size <= MOST_BYTES, "measurements go to benchmarks/results; say a thing once"


@pytest.mark.parametrize("page", [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))], ids=str)
def test_no_line_of_prose_is_long(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    long = [line for line in text.splitlines() if len(line) > 160 and not line.startswith("|")]
    assert not long
