import os
import sys
import zlib

import pytest
from hypothesis import settings
from numba import njit

from streamsvm._compile.inner import InnerDispatcher
from streamsvm.learners.bases import rehearsal

# On CI the draws are the same every time: a failure there is the change's, not the dice's.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("default", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")


LEFT_OUT = pytest.StashKey[int]()


def _call_inner(function, *args):
    """Call a function that only compiled code calls by a compiled function; from tests only."""
    caller = sys._getframe(1).f_globals.get("__name__", "")
    if not caller.startswith("tests"):
        raise TypeError(
            f"{caller} calls {function.py_func.__qualname__}, which compiled code calls"
        )
    if not hasattr(function, "called_by_tests"):
        function.called_by_tests = njit(error_model="numpy")(lambda *args: function(*args))
    return function.called_by_tests(*args)


InnerDispatcher.__call__ = _call_inner


@pytest.fixture(autouse=True, scope="session")
def _no_rehearsals():
    """Compile what a test needs, and not what its learner could need later.

    Tests of rehearsals run programs of their own, in which this is not so.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rehearsal, "is_on", False)
        yield


def pytest_addoption(parser):
    parser.addoption(
        "--part",
        metavar="I/N",
        help="of the slow tests, run those of one part of N: I counts modulo N",
    )


def pytest_collection_modifyitems(config, items):
    """Leave out slow tests, unless `-m` asks for them, `--part` for some, or a test is named."""
    part = config.getoption("--part")
    if part is None and (config.option.markexpr or any("::" in arg for arg in config.args)):
        return
    i, n = map(int, part.split("/")) if part else (0, 0)

    def is_in(item, mark):
        # What compiles the same is in the same part.
        name = mark.args[0] if mark.args else item.nodeid
        return n > 0 and (zlib.crc32(name.encode()) - i) % n == 0

    slow = [(item, item.get_closest_marker("slow")) for item in items]
    left_out = [item for item, mark in slow if mark and not is_in(item, mark)]
    if left_out:
        items[:] = [item for item in items if item not in set(left_out)]
        config.hook.pytest_deselected(items=left_out)
        config.stash[LEFT_OUT] = len(left_out)


def pytest_terminal_summary(terminalreporter, config):
    if n := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(f"{n} slow tests left out: pytest -m slow")
