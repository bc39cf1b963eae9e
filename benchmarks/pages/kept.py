"""Results that are kept: by section and item, each with the code and machine that gave it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.peers.measure import machine

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "results"
MEASURED = ("streamsvm", "connectors")
"""The folders whose content the numbers are of: a commit to docs or tests changes none."""


class MixedError(Exception):
    """Results of different code, or of code that is not committed."""


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def code_now() -> dict[str, str]:
    """Return the commit, and what identifies the content of the measured folders.

    Raises
    ------
    MixedError
        A measured folder has changes that are not committed.

    """
    if changed := _git("status", "--porcelain", "--", *MEASURED):
        raise MixedError(f"commit first; not committed:\n{changed}")
    content = {name: _git("rev-parse", f"HEAD:{name}")[:12] for name in MEASURED}
    return {"commit": _git("rev-parse", "HEAD")[:12], **content}


def _identity(code: dict[str, str]) -> tuple[str | None, ...]:
    return tuple(code.get(name) for name in MEASURED)


def read(section: str) -> dict[str, Any]:
    """Return the results of a section: {item: {code, machine, date, found}}."""
    path = FOLDER / f"{section}.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def is_current(section: str, item: str, code: dict[str, str]) -> bool:
    """Tell whether an item has a result of this code."""
    one = read(section).get(item)
    return one is not None and _identity(one["code"]) == _identity(code)


def keep(section: str, item: str, found: Any, code: dict[str, str]) -> None:
    """Add a result, at once, so that a measurement of hours can be gone on with."""
    FOLDER.mkdir(exist_ok=True)
    results = read(section)
    results[item] = {
        "code": code,
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "found": found,
    }
    (FOLDER / f"{section}.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")


def one_code(sections: dict[str, Iterable[str]]) -> dict[str, str]:
    """Return the code that all results are of.

    Parameters
    ----------
    sections
        The items that a page needs, by section.

    Raises
    ------
    MixedError
        There are results of different code, or an item has none.

    """
    codes: dict[tuple[str | None, ...], list[str]] = {}
    last: dict[str, str] = {}
    for section, items in sections.items():
        results = read(section)
        for item in items:
            if item not in results:
                raise MixedError(
                    f"{section}: {item} was never measured: python -m benchmarks.pages"
                )
            last = results[item]["code"]
            where = f"{section}: {item} ({last.get('commit', 'an unknown commit')})"
            codes.setdefault(_identity(last), []).append(where)
    if len(codes) > 1:
        groups = "\n".join(
            f"  {', '.join(of[:4])}{', ...' if of[4:] else ''}" for of in codes.values()
        )
        raise MixedError(f"results of {len(codes)} different versions of the code:\n{groups}")
    return last
