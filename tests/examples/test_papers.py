"""The scripts that redo the papers' figures, on small generated files of the same shape."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "papers"
SCRIPTS = sorted(FOLDER.glob("figure*.py"))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, d, n in (("adult", 10, 300), ("mnist", 12, 300)):
        for part in ("train", "test"):
            x = rng.integers(0, 2 if name == "adult" else 256, (n, d))
            first = x[:, 0] > x[:, 1:].mean(axis=1)
            label = np.where(first, 1, -1) if name == "adult" else np.where(first, 8, 3)
            columns = {f"f{i}": column for i, column in enumerate(x.T)} | {"label": label}
            pq.write_table(pa.table(columns), folder / f"{name}_{part}.parquet")
    return folder


def test_all_figures_are_there():
    assert [script.stem for script in SCRIPTS] == [f"figure{i}" for i in (2, 3, 4, 5, 6)]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_figure_is_made(script, data, tmp_path):
    command = [sys.executable, str(script), "--data", str(data), "--out", str(tmp_path)]
    done = subprocess.run(
        [*command, "--limit", "80", "--runs", "2"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / f"{script.stem}.md").read_text().splitlines()
    assert done.stdout.splitlines() == lines and len(lines) >= 4
    assert len({line.count("|") for line in lines}) == 1 and "nan" not in done.stdout
    assert (tmp_path / f"{script.stem}.png").read_bytes().startswith(b"\x89PNG")
