"""A run's report as one HTML file: advice, figures and plots, without any other file."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template

_PAGE = Template(
    """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
th { text-align: left; vertical-align: top; padding-right: 2rem; font-weight: 600 }
td, th { border-bottom: 1px solid #ddd; padding-top: .3rem; padding-bottom: .3rem }
table { border-collapse: collapse }
img { max-width: 100%; margin-top: 1rem }
li { max-width: 45rem }
@media (prefers-color-scheme: dark) {
  body { background: #1b1b1b; color: #ddd }
  td, th { border-color: #444 }
  img { background: white }
}
</style>
<h1>$title</h1>
<p>$made</p>
$advice
<table>
$rows
</table>
$plots
</html>
"""
)


def write(
    path: Path,
    title: str,
    made: str,
    rows: Iterable[tuple[str, str]],
    advice: Sequence[str],
    plots: Iterable[Path],
) -> None:
    """Write the page.

    Parameters
    ----------
    path
        The file to write.
    title
        Its title: what was learnt.
    made
        When and by what the report was made.
    rows
        Name and value of each figure.
    advice
        Sentences to show first.
    plots
        PNG files, which are embedded.

    """
    listed = "".join(f"<li>{escape(sentence)}</li>\n" for sentence in advice)
    cells = (f"<tr><th>{escape(n)}</th><td>{escape(value)}</td></tr>" for n, value in rows)
    images = (
        f'<img alt="{escape(plot.stem.replace("_", " "))}" src="data:image/png;base64,'
        f'{base64.b64encode(plot.read_bytes()).decode()}">'
        for plot in plots
    )
    page = _PAGE.substitute(
        title=escape(title),
        made=escape(made),
        advice=f"<h2>Advice</h2>\n<ul>\n{listed}</ul>" if advice else "",
        rows="\n".join(cells),
        plots="\n".join(images),
    )
    path.write_text(page, encoding="utf-8")
