"""The cores that a process may use: its own, those that were asked for, those of its container."""

import os

import pytest

from streamsvm.support.limits import usable_cores
from streamsvm.support.limits.usable_cores import _asked_for, _quotas
from tests.support.test_usable_memory import control_groups


def test_there_is_one_at_least_and_variables_limit_them(monkeypatch):
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert 1 <= usable_cores.usable_cores() <= (os.cpu_count() or 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert usable_cores.usable_cores() == 1


@pytest.mark.parametrize(
    ("text", "found"), [("3", [3]), ("4,2", [4]), ("0", []), ("", []), ("all", []), (" 5 ", [5])]
)
def test_variables(text, found, monkeypatch):
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert list(_asked_for()) == found


@pytest.mark.parametrize(
    ("own", "files", "found"),
    [
        ("0::/a/b\n", {"a/cpu.max": "150000 100000\n", "a/b/cpu.max": "max 100000\n"}, [2]),
        ("0::/\n", {"cpu.max": "50000 100000"}, [1]),
        (
            "5:cpu,cpuacct:/a\n4:memory:/b\n",
            {"cpu/a/cpu.cfs_quota_us": "400000", "cpu/a/cpu.cfs_period_us": "100000"},
            [4],
        ),
        ("5:cpu:/a\n", {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, []),
        ("0::/\n", {}, []),
    ],
)
def test_quotas_of_control_groups(own, files, found, tmp_path):
    assert list(_quotas(*control_groups(tmp_path, own, files))) == found
