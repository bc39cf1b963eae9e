"""Marked blocks of pages, and what their examples print: found and written."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks.pages.kept import ROOT

_EXAMPLE = re.compile(
    r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL
)


def _bounds(text: str, mark: str) -> tuple[int, int]:
    begin = re.search(rf"^<!-- {mark}(?::[^\n]*)? -->\n", text, re.MULTILINE)
    end = text.find(f"<!-- /{mark} -->")
    if begin is None or end < begin.end():
        raise ValueError(f"there is no block {mark!r}")
    return begin.end(), end


def shown(page: str, mark: str) -> list[str]:
    """Return the lines of a block."""
    text = (ROOT / page).read_text("utf-8")
    begin, end = _bounds(text, mark)
    return text[begin:end].splitlines()


def written(page: str, mark: str, lines: Iterable[str]) -> bool:
    """Write the lines of a block; tell whether they are new."""
    path = ROOT / page
    text = path.read_text("utf-8")
    begin, end = _bounds(text, mark)
    new = text[:begin] + "".join(f"{line}\n" for line in lines) + text[end:]
    path.write_text(new, "utf-8")
    return new != text


def run_examples(page: str) -> int:
    """Run the Python blocks of a page, and write what they print under them; return how many.

    A block of output with ``...`` is left as it is, and so are pages that need a broker.
    """
    path, space = ROOT / page, {"__name__": "__page__"}
    text, changed, parts, last = path.read_text("utf-8"), 0, [], 0
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples" / "data", Path(folder) / "examples" / "data")
        here = Path.cwd()
        os.chdir(folder)
        try:
            for match in _EXAMPLE.finditer(text):
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(match[1], page, "exec"), space)
                if match[2] is None or "..." in match[2]:
                    continue
                parts += [text[last : match.start(2)], out.getvalue().rstrip("\n") + "\n"]
                last = match.end(2)
                changed += parts[-1] != match[2]
        finally:
            os.chdir(here)
    path.write_text("".join([*parts, text[last:]]), "utf-8")
    return changed


def say(text: str) -> None:
    """Tell how far the command is, on standard error."""
    print(text, file=sys.stderr, flush=True)
