"""Tables of results by one command: ``python -m benchmarks.pages [SECTION ...]``.

It measures what has no result of the present code yet, item by item, keeps each in
``benchmarks/results`` with its commit and machine, and writes the marked blocks of the pages. It
refuses to write a block whose results are of different code, and to measure code that is not
committed. Errors are the same on a busy machine; times (sections marked so in ``--list``) are of
the processor, but an idle core is still the place to measure them.

``--write`` writes the pages from what is kept, ``--quick`` measures a part of the rows and only
prints, ``--again`` measures also what is there, ``--examples`` runs the Python examples of the
pages and writes what they print.
"""

from __future__ import annotations

import argparse
import sys
import time

from benchmarks.pages import blocks, kept
from benchmarks.pages.sections import SECTIONS, Section

EXAMPLES = ("README.md", "docs/drift.md", "docs/several_classes.md", "docs/monitor.md")


def main() -> int:
    """Measure, keep, write; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pages",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="default: all")
    parser.add_argument("--list", action="store_true", help="list the sections")
    parser.add_argument("--item", action="append", help="measure only this item of a section")
    parser.add_argument("--write", action="store_true", help="measure nothing")
    parser.add_argument("--quick", action="store_true", help="few rows; print, keep nothing")
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    parser.add_argument("--examples", action="store_true", help="run the pages' examples instead")
    options = parser.parse_args()
    if unknown := [name for name in options.sections if name not in SECTIONS]:
        parser.error(f"no section {', '.join(unknown)}: there are {', '.join(SECTIONS)}")
    if options.list:
        for name, section in SECTIONS.items():
            kind = "errors and times" if section.is_timed else "errors"
            pages = ", ".join(dict.fromkeys(page for page, _ in section.blocks))
            print(f"{name:12} {kind:17} {section.minutes:4} min  {pages}")
            print(f"{'':12} items: {', '.join(section.items)}")
        return 0
    if options.examples:
        for page in EXAMPLES:
            print(f"{page}: {blocks.run_examples(page)} outputs are new")
        return 0
    chosen = {name: SECTIONS[name] for name in options.sections or SECTIONS}
    try:
        for name, section in chosen.items():
            if not options.write:
                measure(name, section, options)
        if not options.quick and not options.item:
            write(chosen)
    except kept.MixedError as error:
        print(f"python -m benchmarks.pages: {error}", file=sys.stderr)
        return 1
    return 0


def measure(name: str, section: Section, options: argparse.Namespace) -> None:
    """Measure the items that have no result of this code, and keep each."""
    code = {} if options.quick else kept.code_now()
    for item, call in section.items.items():
        if options.item and item not in options.item:
            continue
        if not (options.quick or options.again) and kept.is_current(name, item, code):
            continue
        start = time.perf_counter()
        found = call(options.quick)
        blocks.say(f"{name}: {item}, {time.perf_counter() - start:.0f} s")
        if options.quick:
            print(item, found)
        else:
            kept.keep(name, item, found, code)


def write(chosen: dict[str, Section]) -> None:
    """Write the blocks of sections; all results must be of one code."""
    code = kept.one_code({name: section.items for name, section in chosen.items()})
    for name, section in chosen.items():
        results = kept.read(name)
        found = {item: results[item]["found"] for item in section.items}
        for (page, mark), lines in section.blocks.items():
            is_new = blocks.written(page, mark, lines(found))
            print(f"{page}, {mark}: {'new' if is_new else 'as before'} ({code['commit']})")


if __name__ == "__main__":
    raise SystemExit(main())
