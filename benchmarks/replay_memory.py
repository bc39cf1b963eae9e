"""Peak memory of replaying a large file: ``python -m benchmarks.replay_memory [--rows N]``.

Writes a file of N x 20 floats (5,000,000 by default, twice: many row groups, and a single one) to a
temporary folder, replays it with ``--limit``, and prints the peak resident memory of the replay,
that of an idle process of ours, and the model's own bytes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_RUN = """
import json, sys
from streamsvm.cli.main import main
code = main(sys.argv[1:]) if len(sys.argv) > 1 else 0
# Not getrusage: its maximum is inherited from the process that started this one.
line = next(l for l in open("/proc/self/status") if l.startswith("VmHWM"))
peak = int(line.split()[1]) / 1024
print(json.dumps({"peak_mb": peak, "code": code}))
"""


def write(path: Path, rows: int, row_group: int) -> None:
    """Write seeded rows of two overlapping classes."""
    rng = np.random.default_rng(0)
    schema = pa.schema([(f"f{i}", pa.float64()) for i in range(20)] + [("label", pa.bool_())])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, rows, row_group):
            n = min(row_group, rows - start)
            x = rng.normal(size=(n, 20))
            y = x[:, 0] * x[:, 1] + 0.3 * rng.normal(size=n) > 0
            columns = [pa.array(c) for c in x.T] + [pa.array(y)]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=row_group)


def peak(*arguments: str) -> tuple[float, dict]:
    """Return the peak in MB of one process, and the report it printed."""
    command = [sys.executable, "-c", _RUN, *arguments]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    last = json.loads(out[-1])
    assert last["code"] == 0
    return last["peak_mb"], json.loads(out[0]) if len(out) > 1 else {}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--limit", type=int, default=20_000)
    options = parser.parse_args()
    idle, _ = peak()
    print(f"idle process: {idle:.0f} MB")
    with tempfile.TemporaryDirectory() as folder:
        for name, group in (("row groups of 100,000", 100_000), ("one row group", options.rows)):
            path = Path(folder) / "stream.parquet"
            write(path, options.rows, group)
            used, report = peak(
                "replay", str(path), "--target", "label", "--limit", str(options.limit), "--json",
                "--quiet",
            )  # fmt: skip
            model = report["memory_bytes"] / 1e6
            print(
                f"{name}: {options.rows:,} x 20, {path.stat().st_size / 1e6:.0f} MB on disk, "
                f"limit {options.limit:,}: peak {used:.0f} MB, model {model:.0f} MB, "
                f"beyond the model {used - model:.0f} MB"
            )


if __name__ == "__main__":
    main()
