"""Spoilt model files in processes of their own: a crash or a hang would end the tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "tests" / "model_files" / "fixtures").glob("*.svm"))
# More by choice: MUTANTS=5000.
COUNT = os.environ.get("MUTANTS", "50")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_spoilt_files_are_refused_or_harmless(path):
    command = [sys.executable, "-m", "tests.model_files.mutants", str(path), "1", COUNT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    said = f"{done.stdout[-400:]}\n{done.stderr[-4000:]}"
    assert done.returncode == 0, f"exit code {done.returncode}: {said}"
    assert f"{COUNT} mutants" in done.stdout
