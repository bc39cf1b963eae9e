"""The page around the parts that change: headings, captions, and places for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from string import Template

from streamsvm.page.sections import TITLES
from streamsvm.page.series import KINDS
from streamsvm.support.printing import escape

_PAGE = Template(
    """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title - streamsvm</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
<script src="page.js" defer></script>
</head>
<body>
<a class="skip" href="#main">To the figures</a>
<header>
<h1>$title</h1>
<p>$learner · <span id="state">$state</span> ·
<span id="link">not renewed: this needs scripts</span>
<button id="pause" type="button" hidden>Pause</button></p>
<p id="notes" role="status">$notes</p>
</header>
<nav aria-label="What the charts show">
<a href="./"$all>All examples</a> <a href="./?of=late"$late>The latest records</a>
</nav>
<main id="main" tabindex="-1">
<dl id="now" aria-label="Newest figures">$now</dl>
<div class="cards">
$sections
</div>
</main>
</body>
</html>
"""
)


def page(title: str, learner: str, parts: Mapping[str, str], of_late: bool) -> str:
    """Return the page with the parts of `Sections.made`."""
    here = ' aria-current="page"'
    return _PAGE.substitute(
        title=escape(title),
        learner=escape(learner),
        all="" if of_late else here,
        late=here if of_late else "",
        state=parts["state"],
        notes=parts["notes"],
        now=parts["now"],
        sections="\n".join([*_charts(parts), *_tables(parts)]),
    )


def _charts(parts: Mapping[str, str]) -> Iterator[str]:
    for name, kind in KINDS.items():
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
