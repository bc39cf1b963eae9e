"""The page around the parts that change: headings, captions, and places for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from streamsvm.monitor.figures import CHARTS
from streamsvm.monitor.series import Chart
from streamsvm.page.charts import parts_of
from streamsvm.page.confusion import confusion
from streamsvm.page.sections import TITLES
from streamsvm.support.printing import escape

_PAGE = Template(
    """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title - streamsvm</title>
$links
</head>
<body>
$above
<main id="main" tabindex="-1">
$figures
<div class="cards">
$sections
</div>
</main>
</body>
</html>
"""
)

_LINKS = """<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
<script src="page.js" defer></script>"""

_ABOVE = Template(
    """<a class="skip" href="#main">To the figures</a>
<header>
<h1>$title</h1>
<p>$learner · <span id="state">$state</span> ·
<span id="link">not renewed: this needs scripts</span>
<button id="pause" type="button" hidden>Pause</button></p>
<p id="notes" role="status">$notes</p>
</header>
<nav aria-label="What the charts show">
<a href="./"$all>All examples</a> <a href="./?of=late"$late>The latest records</a>
</nav>"""
)


def page(title: str, learner: str, parts: Mapping[str, str], of_late: bool) -> str:
    """Return the live page with the parts of `Sections.made`."""
    here = ' aria-current="page"'
    above = _ABOVE.substitute(
        title=escape(title),
        learner=escape(learner),
        all="" if of_late else here,
        late=here if of_late else "",
        state=parts["state"],
        notes=parts["notes"],
    )
    figures = f'<dl id="now" aria-label="Newest figures">{parts["now"]}</dl>'
    return _page(title, _LINKS, above, figures, [*_charts(parts), *_tables(parts)])


def report(
    title: str,
    made: str,
    rows: Iterable[tuple[str, str]],
    advice: Sequence[str],
    charts: Mapping[str, Chart],
    pairs: Iterable[Sequence[Any]],
) -> str:
    """Return the page of a report, in one file: `pairs` are as of `confusion`."""
    parts = defaultdict[str, str](str, confusion=confusion(pairs))
    for name, chart in charts.items():
        parts |= parts_of(name, chart, log_x=True)
    style = files("streamsvm.page").joinpath("page.css").read_text()
    listed = "".join(f"<li>{escape(sentence)}</li>\n" for sentence in advice)
    cells = "\n".join(f"<tr><th>{escape(n)}</th><td>{escape(v)}</td></tr>" for n, v in rows)
    above = f"<header><h1>{escape(title)}</h1>\n<p>{escape(made)}</p></header>"
    figures = f"<h2>Advice</h2>\n<ul>\n{listed}</ul>\n" if listed else ""
    figures += f"<table>\n{cells}\n</table>"
    sections = [part for part in (*_charts(parts), *_tables(parts)) if " hidden>" not in part]
    return _page(title, f"<style>\n{style}</style>", above, figures, sections)


def _page(title: str, links: str, above: str, figures: str, sections: Iterable[str]) -> str:
    return _PAGE.substitute(
        title=escape(title),
        links=links,
        above=above,
        figures=figures,
        sections="\n".join(sections),
    )


def _charts(parts: Mapping[str, str]) -> Iterator[str]:
    for name, kind in CHARTS.items():
        points = f"{kind.title}: points"
        yield _section(
            name,
            kind.title,
            parts,
            f'<p>{escape(kind.caption)}</p><figure id="{name}">{parts[name]}</figure>'
            f"<details><summary>Points as a table</summary>"
            f"{_scrolled(f'{name}-table', points, parts)}</details>",
        )


def _tables(parts: Mapping[str, str]) -> Iterator[str]:
    for name, title in TITLES.items():
        content = _scrolled(name, title, parts)
        if name == "regions":
            content = f'<figure id="{name}">{parts[name]}</figure>'
        if name == "values":
            content = f"<details><summary>Each with its meaning</summary>{content}</details>"
        yield _section(name, title, parts, content)


def _section(name: str, title: str, parts: Mapping[str, str], content: str) -> str:
    hidden = "" if parts[name] else " hidden"
    heading = f'<h2 id="{name}-title">{escape(title)}</h2>'
    return f'<section aria-labelledby="{name}-title"{hidden}>{heading}{content}</section>'


def _scrolled(name: str, title: str, parts: Mapping[str, str]) -> str:
    """Return a place for a table that the keyboard can scroll."""
    label = f'role="region" aria-label="{escape(title)}"'
    return f'<div id="{name}" class="wide" tabindex="0" {label}>{parts[name]}</div>'
