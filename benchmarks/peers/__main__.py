"""Ours and the peers in one run: ``python -m benchmarks.peers [ID ...]``.

Every system runs in a process of its own, on one core and with one thread, in turns with the
others; training alone is timed, after compiled code was loaded. Printed are medians, how many times
longer a peer takes than ours (with the spread of the repeats), test errors, and peak memory.
``--floor``: how far LASVM is from the arithmetic that it cannot do without. The tables of
benchmarks/results and the README are written by ``python -m benchmarks.pages events peers``.
"""

from __future__ import annotations

import argparse

from benchmarks.peers import floor, tables
from benchmarks.peers.measure import machine, measure
from benchmarks.peers.scenarios import BY_ID, SCENARIOS


def main() -> None:
    """Measure, print, and keep the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help="scenarios; default: all quick ones")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--slow", action="store_true", help="with peers that take many minutes")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds a run may take")
    parser.add_argument("--floor", action="store_true", help="the floor of Adult and MNIST 8")
    options = parser.parse_args()
    if unknown := [name for name in options.ids if name not in BY_ID]:
        parser.error(f"no scenario {', '.join(unknown)}: see --list")
    if options.list:
        for scenario in SCENARIOS:
            print(f"{scenario.id:18} {scenario.shows}; {', '.join(scenario.systems)}")
    elif options.floor:
        floor.report()
    else:
        _measure(options)


def _measure(options: argparse.Namespace) -> None:
    chosen = options.ids or [s.id for s in SCENARIOS if not s.only_by_name]
    print(machine())
    for name in chosen:
        results = measure(BY_ID[name], options.repeats, options.slow, options.timeout)
        print("\n".join(tables.table(name, results)), flush=True)


if __name__ == "__main__":
    main()
