import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_shipped_file_is_rivers(tmp_path):
    import pyarrow.parquet as pq

    script = ROOT / "examples" / "data" / "write_bananas.py"
    copy = tmp_path / script.name
    copy.write_text(script.read_text())
    runpy.run_path(str(copy), run_name="__main__")
    written = pq.read_table(tmp_path / "bananas.parquet")
    assert written.equals(pq.read_table(script.with_name("bananas.parquet")))
