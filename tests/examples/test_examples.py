import importlib.util
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.golden.problems import FOLDER
from streamsvm.cli.main import main
from tests.programs import ROOT, python
from tests.slow import slow_but

EXAMPLES = sorted({*(ROOT / "examples").glob("*.py")} - {ROOT / "examples" / "mock_broker.py"})
FIRST = [path for path in EXAMPLES if path.stem in ("custom_kernel", "river_pipeline")]


@pytest.mark.parametrize("path", slow_but(EXAMPLES, *FIRST), ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    needs_spark = "import SparkSession" in path.read_text()
    if needs_spark and not (shutil.which("java") and importlib.util.find_spec("pyspark")):
        pytest.skip("pyspark, or the Java that it needs, is not installed")
    home = {"PATH": os.environ["PATH"] if needs_spark else "", "HOME": str(tmp_path)}
    assert python(path, folder=tmp_path, seconds=None, **home).strip()


@pytest.mark.parametrize(
    ("name", "data", "rows", "least"),
    [("chunk_words", "conll2000", 600, 75.0), ("read_words", "ocr_letters", 3000, 55.0)],
)
def test_sentences_of_real_files(name, data, rows, least, tmp_path, monkeypatch, capsys):
    script, files = ROOT / "examples" / f"{name}.py", []
    for part in ("train", "test"):
        if not (path := FOLDER / f"{data}_{part}.parquet").is_file():
            pytest.skip(f"optional data set {path.name} is not beside the repository")
        files.append(str(tmp_path / path.name))
        pq.write_table(pq.read_table(path).slice(0, rows), files[-1])
    monkeypatch.setattr(sys, "argv", [str(script), *files])
    runpy.run_path(str(script), run_name="__main__")
    shares = [float(share) for share in re.findall(r"([\d.]+)%", capsys.readouterr().out)]
    assert len(shares) > 1 and min(shares) > least


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
    script = ROOT / "examples" / "data" / "write_bananas.py"
    copy = tmp_path / script.name
    copy.write_text(script.read_text())
    runpy.run_path(str(copy), run_name="__main__")
    written = pq.read_table(tmp_path / "bananas.parquet")
    assert written.equals(pq.read_table(script.with_name("bananas.parquet")))
