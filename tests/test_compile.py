"""The cache of compiled code: fresh after any edit, kept else, never a reason to fail."""

import os
import re
import shutil

import numpy as np
import pytest
from numba.core import caching

from streamsvm import _compile
from streamsvm._compile import decorators, dispatchers
from streamsvm.support import rows
from tests.programs import ROOT, python
from tests.slow import slow_but

pytestmark = pytest.mark.skipif(not _compile.JIT, reason="compiled code is switched off")

# Only what the one kernel row needs: compiles in a few seconds.
PROGRAM = """
import numpy as np
from streamsvm import kernels
from streamsvm.support import dense_store
from streamsvm.support.kernel_rows.kernel_values import kernel_values
store = dense_store.new_store(1, 2)
x = np.array([[2.0, 1.0]], np.float32)
dense_store.put(store, 0, x[0])
out = np.zeros((1, 32), np.float32)
kernel_values(kernels.Linear(), store, x, 1, 2, 0, 1, out)
stats = kernel_values.stats
print(float(out[0, 0]), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def run(folder, program=PROGRAM, **environment):
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("NUMBA")]:
            patch.delenv(name)
        return python("-c", program, folder=folder, PYTHONPATH=str(folder), **environment).split()


@pytest.fixture
def copy(tmp_path):
    """Give a folder with a copy of the package, so that edits and caches are its own.

    Without the public names: what is imported here starts in half the time.
    """
    shutil.copytree(
        ROOT / "streamsvm", tmp_path / "streamsvm", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "streamsvm" / "__init__.py").write_text("")
    return tmp_path


def test_choices_by_type_call_the_chosen_function_itself():
    """A function made for the choice would be compiled once more, and could have a namesake."""

    @_compile.compiled
    def size(x):
        return rows.count(x) + rows.width(x)

    # Code that a run before left in the cache cannot be inspected.
    size._cache = caching.NullCache()
    dense = np.zeros((2, 3), np.float32)
    assert size(dense) == 5 == size(rows.sparse(dense))
    for text, name in zip(size.inspect_llvm().values(), ("dense", "sparse"), strict=True):
        for function in ("_count", "_width"):
            assert re.search(rf"streamsvm[^@\n]*{function}_{name}", text)


def test_second_process_hits_and_an_edit_elsewhere_misses(copy):
    assert run(copy) == ["5.0", "0", "1"]
    assert run(copy) == ["5.0", "1", "0"]
    linear = copy / "streamsvm" / "kernels" / "dot.py"
    linear.write_text(linear.read_text().replace("kernel.scale * product", "3.0 * product"))
    assert run(copy) == ["15.0", "0", "1"]


STAMPS = """
from streamsvm import _compile
from streamsvm.learners.bases import event_calls
from streamsvm.solvers.lasvm import extremes, step
from streamsvm.solvers.tracking import step as tracking
from streamsvm.support.kernel_rows import kernel_values
for module, name in (
    (extremes, "update_gradient"),
    (step, "learn_rows"),
    (tracking, "learn_rows"),
    (kernel_values, "kernel_values"),
    (event_calls, "learn_dense"),
):
    print(_compile.stamp(getattr(module, name).py_func)[0])
"""


def test_an_edit_touches_the_stamps_of_what_depends_on_it_only(copy):
    before = run(copy, STAMPS)
    extremes = copy / "streamsvm" / "solvers" / "lasvm" / "extremes.py"
    extremes.write_text(extremes.read_text() + "\n# An edit.\n")
    same = [old == new for old, new in zip(before, run(copy, STAMPS), strict=True)]
    # Events call all solvers, by a table.
    assert same == [False, False, True, True, False]
    tiles = copy / "streamsvm" / "support" / "tiles.py"
    tiles.write_text(tiles.read_text() + "\n# An edit.\n")
    assert not set(before) & set(run(copy, STAMPS))


PUT = """
import sys
import numpy as np
from streamsvm.support import dense_store
store = dense_store.new_store(1, 2)
try:
    dense_store.put(store, {slot}, np.ones(2, np.float32))
    print("put", sum(dense_store.put.stats.cache_hits.values()))
except IndexError:
    print("refused", sum(dense_store.put.stats.cache_hits.values()))
"""


def test_a_warm_cache_of_unchecked_code_does_not_hide_a_bad_index(copy):
    warm, bad = PUT.format(slot=31), PUT.format(slot=32)
    assert run(copy, warm) == ["put", "0"]
    assert run(copy, warm) == ["put", "1"]
    assert run(copy, bad, NUMBA_BOUNDSCHECK="1") == ["refused", "0"]
    assert run(copy, bad, NUMBA_BOUNDSCHECK="1") == ["refused", "1"]


DAMAGES = {
    "cut short": lambda content: content[:30],
    "empty": lambda content: b"",
    "noise": lambda content: bytes(range(256)) * 40,
    "last bytes lost": lambda content: content[:-5],
    "a bit turned": lambda content: content[:60] + bytes([content[60] ^ 64]) + content[61:],
}


@pytest.mark.parametrize("suffix", slow_but(["nbi", "nbc", "nb[ic]"], "nb[ic]"))
def test_damaged_cache_files_are_compiled_again(copy, suffix):
    warm = PUT.format(slot=31)
    run(copy, warm)
    kept = {file: file.read_bytes() for file in copy.rglob("*.nb[ic]")}
    for name, damage in DAMAGES.items():
        damaged = list(copy.rglob(f"*.{suffix}"))
        assert damaged
        for file in damaged:
            file.write_bytes(damage(file.read_bytes()))
        assert run(copy, warm)[0] == "put", name
        if name == "cut short":
            # It was written anew.
            assert run(copy, warm) == ["put", "1"]
        for file in copy.rglob("*.nb[ic]"):
            file.unlink()
        for file, content in kept.items():
            file.write_bytes(content)


def test_data_files_of_another_entry_are_not_used(tmp_path, monkeypatch):
    """Numba writes the index first: a process may end, or another one read, before the data."""
    kind = type(decorators._StampedCache(_compile.stamp)._cache_file)
    old, new = (kind(str(tmp_path), "f", (stamp,)) for stamp in ("old", "new"))
    old.save("key", "old code")
    assert old.load("key") == "old code" and new.load("key") is None

    def interrupted(name, data):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(new, "_save_data", interrupted)
        with pytest.raises(KeyboardInterrupt):
            new.save("key", "new code")
    assert new.load("key") is None
    new.save("key", "new code")
    assert new.load("key") == "new code" and old.load("key") is None
    # Two processes that do not wait for each other: the index of one, the data of the other.
    index = {"other key": new._load_index()["key"]}
    new._save_index(index)
    assert new.load("other key") is None


def test_where_the_package_cannot_be_written_the_users_cache_folder_is_used_or_none(copy):
    # A file in the place of each cache folder refuses root too; so does HOME at first.
    for folder in {path.parent for path in (copy / "streamsvm").rglob("*.py")}:
        (folder / "__pycache__").write_text("")
    home = copy / "home"
    home.write_text("")
    environment = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    for _ in range(2):
        assert run(copy, PUT.format(slot=31), **environment) == ["put", "0"]
    assert not list(copy.rglob("*.nb[ic]"))
    home.unlink()
    home.mkdir()
    environment["XDG_CACHE_HOME"] += "/cache"
    for n_hits in "01":
        assert run(copy, PUT.format(slot=31), **environment) == ["put", n_hits]
        assert list(home.rglob("*.nbi"))


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
    # Other code is not that of the user's kernel, and does not depend on it.
    assert run(copy) == ["5.0", "0", "1"]
    assert run(copy, "import mine\n" + PROGRAM) == ["5.0", "1", "0"]


def test_without_the_compiler_the_models_are_the_same():
    program = """
import numpy as np
from streamsvm import IncrementalSVMClassifier, LASVMClassifier, SGDQNClassifier, SVMSGDClassifier
rng = np.random.default_rng(0)
x = rng.normal(size=(60, 2)).astype(np.float32)
model = LASVMClassifier(C=1.0)
model.learn_many(x, x[:, 0] * x[:, 1] > 0)
model.finish()
exact = IncrementalSVMClassifier(window=25)
exact.learn_many(x, x[:, 0] * x[:, 1] > 0)
print(round(model.dual, 3), model.n_support_vectors, round(exact.dual, 6))
# Linear ones of events, dense and sparse, with zeros in them.
for cls in (SVMSGDClassifier, SGDQNClassifier):
    for sparse in (False, True):
        model = cls(sparse=sparse)
        for i in range(20):
            x = {"a": i % 3 - 1.0, "b": 0.0, f"c{i % 7}": 1.0}
            model.predict_one(x)
            model.learn_one(x, i % 2 == 0)
        print(*(round(w, 9) for w in model.weights.values()), round(model.intercept, 9))
"""
    plain = run(ROOT, program, NUMBA_DISABLE_JIT="1")
    assert len(plain) == 3 + 4 * 10 and plain == run(ROOT, program)


@pytest.mark.slow
def test_with_other_internals_of_numba_the_models_are_the_same(tmp_path):
    program = """
import numpy as np
from numba.core import codegen
if HIDDEN:
    del codegen.JITCodeLibrary
from streamsvm import LASVMClassifier
from streamsvm._compile import dispatchers
x = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
model = LASVMClassifier(C=1.0)
model.learn_many(x, x[:, 0] * x[:, 1] > 0)
for row in x.tolist():
    model.predict_one(dict(enumerate(row)))
    model.learn_one(dict(enumerate(row)), row[0] > 0)
print(model.dual, dispatchers.InnerDispatcher is None)
"""
    # Not what the other way has compiled.
    own = f"import os; os.environ['NUMBA_CACHE_DIR'] = {str(tmp_path)!r}; HIDDEN = True"
    found, without = run(ROOT, "HIDDEN = False" + program), run(ROOT, own + program)
    assert found[0] == without[0]
    assert (found[1], without[1]) == ("False", "True")


def test_inner_functions_work_with_this_version_of_numba():
    assert dispatchers._do_inner_functions_work()
