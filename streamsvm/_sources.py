"""A digest of all source files that a compiled function depends on."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parent
_IMPORT = re.compile(r"^\s*from (streamsvm[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
# Files that a file calls without an import, by a table of types, which it declares by this line.
_USES = re.compile(r'^USES = "([^"]*)"', re.MULTILINE)


@cache
def _imported_by(path: Path) -> frozenset[Path]:
    """Return the files of the package that a file imports."""
    found, text = set(), path.read_text(encoding="utf-8")
    for module, names in _IMPORT.findall(text):
        start = _ROOT.joinpath(*module.split(".")[1:])
        parts = [start / name for name in re.findall(r"\w+", names)]
        found |= {place.with_suffix(".py") for place in (start, *parts) if place != _ROOT}
        found |= {place / "__init__.py" for place in (start, *parts) if place != _ROOT}
    for pattern in _USES.findall(text):
        found |= set(_ROOT.glob(pattern))
    return frozenset(place for place in found if place.is_file())


@cache
def digest_of_sources(path: Path) -> str:
    """Return a digest of a file and of all package files that it imports, directly or not."""
    # A function typed at a prompt has no file.
    closure, fresh = set((_ROOT / "_compile").glob("*.py")), {path} if path.is_file() else set()
    while fresh:
        closure |= fresh
        fresh = set().union(*map(_imported_by, fresh)) - closure
    digest = hashlib.sha256()
    for source in sorted(closure):
        digest.update(source.name.encode() + b"\0")
        digest.update(_digest_of_file(source))
    return digest.hexdigest()


@cache
def _digest_of_file(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()
