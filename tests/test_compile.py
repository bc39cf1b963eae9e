"""The cache of compiled code: fresh after any edit, kept else, never a reason to fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamsvm import _compile

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not _compile.JIT, reason="compiled code is switched off")

# Only what the one kernel row needs: compiles in a few seconds.
PROGRAM = """
import numpy as np
from streamsvm import kernels
from streamsvm.support import dense_store
from streamsvm.support.kernel_values import kernel_values
store = dense_store.new_store(1, 2)
x = np.array([[2.0, 1.0]], np.float32)
dense_store.put(store, 0, x[0])
out = np.zeros((1, 32), np.float32)
kernel_values(kernels.Linear(), store, x, 1, 2, 0, 1, out)
stats = kernel_values.stats
print(float(out[0, 0]), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def run(folder, program=PROGRAM, **environment):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def copy(tmp_path):
    """Give a folder with a copy of the package, so that edits and caches are its own."""
    shutil.copytree(
        ROOT / "streamsvm", tmp_path / "streamsvm", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path


def test_second_process_hits_and_an_edit_elsewhere_misses(copy):
    assert run(copy) == ["5.0", "0", "1"]
    assert run(copy) == ["5.0", "1", "0"]
    linear = copy / "streamsvm" / "kernels" / "linear.py"
    linear.write_text(linear.read_text().replace("kernel.scale * product", "3.0 * product"))
    assert run(copy) == ["15.0", "0", "1"]


def test_bounds_checked_code_is_kept_apart(copy):
    assert run(copy)[1:] == ["0", "1"]
    assert run(copy, NUMBA_BOUNDSCHECK="1")[1:] == ["0", "1"]
    assert run(copy, NUMBA_BOUNDSCHECK="1")[1:] == ["1", "0"]
    assert run(copy)[1:] == ["1", "0"]


def test_damaged_cache_files_are_compiled_again(copy):
    run(copy)
    for file in copy.rglob("*.nb[ic]"):
        file.write_bytes(file.read_bytes()[:30])
    assert run(copy)[0] == "5.0"


def test_read_only_everywhere_still_runs(copy):
    # A file in the place of each cache folder refuses root too; so does HOME.
    for folder in [copy / "streamsvm", *(copy / "streamsvm").iterdir()]:
        if folder.is_dir():
            shutil.rmtree(folder / "__pycache__", ignore_errors=True)
            (folder / "__pycache__").write_text("")
    home = copy / "home"
    home.write_text("")
    environment = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    for _ in range(2):
        assert run(copy, **environment) == ["5.0", "0", "1"]
    assert not list(copy.rglob("*.nb[ic]"))


def test_users_cache_folder_is_used_when_the_package_cannot_be_written(copy):
    for folder in [copy / "streamsvm", *(copy / "streamsvm").iterdir()]:
        if folder.is_dir():
            (folder / "__pycache__").write_text("")
    home = copy / "home"
    home.mkdir()
    environment = {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    assert run(copy, **environment)[1:] == ["0", "1"]
    assert list(home.rglob("*.nbi"))
    assert run(copy, **environment)[1:] == ["1", "0"]


def test_an_edited_kernel_of_a_user_is_compiled_again(copy):
    module = copy / "mine.py"
    text = (
        "from typing import NamedTuple\nfrom streamsvm import kernels\n"
        "class Mine(NamedTuple):\n    a: float\n"
        "@kernels.register(Mine, of='dot')\ndef mine(kernel, product):\n"
        "    return kernel.a * product\n"
    )
    module.write_text(text)
    program = "import mine\n" + PROGRAM.replace("kernels.Linear()", "mine.Mine(2.0)")
    assert run(copy, program) == ["10.0", "0", "1"]
    assert run(copy, program) == ["10.0", "1", "0"]
    module.write_text(text.replace("kernel.a * product", "kernel.a * product + 1.0"))
    assert run(copy, program) == ["11.0", "0", "1"]
    assert run(copy) == ["5.0", "0", "1"]


def test_without_the_compiler_the_model_is_the_same(copy):
    program = """
import numpy as np
from streamsvm import LASVMClassifier
rng = np.random.default_rng(0)
x = rng.normal(size=(60, 2)).astype(np.float32)
model = LASVMClassifier(C=1.0)
model.learn_many(x, x[:, 0] * x[:, 1] > 0)
model.finish()
print(round(model.dual, 3), model.n_support_vectors)
"""
    plain = run(copy, program, NUMBA_DISABLE_JIT="1")
    assert plain == run(ROOT, program)
