"""What the build of the site does not check: navigation, links that leave the folder, size."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}


def prose_of(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def test_the_navigation_names_every_page_once():
    configuration = (ROOT / "mkdocs.yml").read_text()
    named = re.findall(r"^ +- [^:]+: (\S+\.md)$", configuration, re.MULTILINE)
    assert sorted(named) == sorted(PAGES)


@pytest.mark.parametrize("page", [ROOT / "README.md", *map(DOCS.joinpath, sorted(PAGES))], ids=str)
def test_links_stay_in_the_folder_and_lines_are_short(page):
    text = prose_of(page.read_text())
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:|#", link):
            target = page.parent / link.partition("#")[0]
            folder = DOCS if page.is_relative_to(DOCS) else ROOT
            assert target.resolve().is_relative_to(folder) and target.exists(), link
    assert not [ln for ln in text.splitlines() if len(ln) > 160 and not ln.startswith("|")]


def test_every_result_is_shown_once():
    text = (DOCS / "measurements.md").read_text()
    shown = re.findall(r'^--8<-- "benchmarks/results/(\S+)"$', text, re.MULTILINE)
    assert sorted(shown) == sorted(
        path.name for path in (ROOT / "benchmarks" / "results").glob("*.md")
    )


def test_links_within_the_site_name_headings():
    anchors = {page: _anchors(_with_results((DOCS / page).read_text())) for page in PAGES}
    for page in PAGES:
        for target, anchor in re.findall(
            r"\]\(([^)\s#:]*)#([^)\s]+)\)", prose_of((DOCS / page).read_text())
        ):
            path = ((DOCS / page).parent / target).resolve() if target else DOCS / page
            assert anchor in anchors[path.relative_to(DOCS).as_posix()], (page, target, anchor)


def _with_results(text):
    return re.sub(r'^--8<-- "(.*)"$', lambda m: (ROOT / m[1]).read_text(), text, flags=re.MULTILINE)


def _anchors(text):
    """Return the names that the site gives to the headings of a page."""
    text = prose_of(text)
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
