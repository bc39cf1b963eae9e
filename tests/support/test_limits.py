"""What a process may use: of the machine, of its own limits, of those of its container."""

import os
import subprocess
import sys

import pytest

from streamsvm.support.limits import _asked_for, _group_limits, _quotas, usable_cores, usable_memory


def test_memory_is_at_most_the_memory_of_the_machine():
    found = usable_memory()
    assert 10_000_000 < found <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_the_limit_of_a_process_holds():
    pytest.importorskip("resource")
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (2**32, resource.RLIM_INFINITY))"
        "; from streamsvm.support.limits import usable_memory; print(usable_memory())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ran.stdout) <= 2**32


def control_groups(folder, own, files):
    """Write the file that names the groups of a process, and files of these; return both places."""
    (folder / "own").write_text(own)
    for name, text in files.items():
        path = folder / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "own", folder / "groups"


@pytest.mark.parametrize(
    ("limits", "own", "files", "found"),
    [
        *((_group_limits, *case) for case in (
            ("0::/a/b\n", {"a/memory.max": "700\n", "a/b/memory.max": "max\n"}, [700]),
            ("0::/a/b\n", {"memory.max": "500", "a/b/memory.max": "400"}, [500, 400]),
            ("0::/../x\n", {"memory.max": "300"}, [300]),
            ("5:cpu:/a\n4:memory:/a\n", {"memory/a/memory.limit_in_bytes": "900"}, [900]),
            ("4:memory:/host\n", {"memory/memory.limit_in_bytes": "800"}, [800]),
            ("nonsense\n", {"memory.max": "1"}, []),
            ("0::/\n", {}, []),
        )),
        *((_quotas, *case) for case in (
            ("0::/a/b\n", {"a/cpu.max": "150000 100000\n", "a/b/cpu.max": "max 100000\n"}, [2]),
            ("0::/\n", {"cpu.max": "50000 100000"}, [1]),
            ("5:cpu,cpuacct:/a\n4:memory:/b\n",
             {"cpu/a/cpu.cfs_quota_us": "400000", "cpu/a/cpu.cfs_period_us": "100000"}, [4]),
            ("5:cpu:/a\n",
             {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, []),
            ("0::/\n", {}, []),
        )),
    ],
)  # fmt: skip
def test_limits_of_control_groups(limits, own, files, found, tmp_path):
    assert list(limits(*control_groups(tmp_path, own, files))) == found
    assert list(limits(tmp_path / "no file", tmp_path)) == []


def test_there_is_one_core_at_least_and_variables_limit_them(monkeypatch):
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert usable_cores() == 1


@pytest.mark.parametrize(
    ("text", "found"), [("3", [3]), ("4,2", [4]), ("0", []), ("", []), ("all", []), (" 5 ", [5])]
)
def test_variables(text, found, monkeypatch):
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert list(_asked_for()) == found
