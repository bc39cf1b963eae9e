import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from streamsvm.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted({*(ROOT / "examples").glob("*.py")} - {ROOT / "examples" / "mock_broker.py"})


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


def test_the_mock_broker_and_its_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, str(ROOT / "examples" / "mock_broker.py"), "120"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        try:
            words = broker.stdout.readline().split()
            assert words[0] == "streamsvm" and main([*words[1:], "--json"]) == 0
        finally:
            broker.terminate()
    assert json.loads(capsys.readouterr().out)["rows"] == 1250 and Path("pages.ckpt").exists()


def test_shipped_file_is_rivers(tmp_path):
    import pyarrow.parquet as pq

    script = ROOT / "examples" / "data" / "write_bananas.py"
    copy = tmp_path / script.name
    copy.write_text(script.read_text())
    runpy.run_path(str(copy), run_name="__main__")
    written = pq.read_table(tmp_path / "bananas.parquet")
    assert written.equals(pq.read_table(script.with_name("bananas.parquet")))
