"""Texts from data for people: what would steer a terminal or a page, or hide, is escaped."""

import html


def printable(text: str) -> str:
    r"""Return a text in which characters that a terminal obeys, or hides, are escaped.

    >>> from streamsvm.support.printing import printable
    >>> print(printable("\x1b[2J.parquet"))
    \x1b[2J.parquet
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def escape(text: str) -> str:
    r"""Return a printable text for HTML.

    >>> from streamsvm.support.printing import escape
    >>> print(escape("<\u202e>"))
    &lt;\u202e&gt;
    """
    return html.escape(printable(text))
