import secrets
import sys
import zlib

import pytest
from hypothesis import HealthCheck, seed, settings
from numba import njit

from streamsvm._compile.inner import EntryDispatcher, InnerDispatcher
from streamsvm.learners.bases import rehearsal
from tests.slow import LONG

# The draws are the same every time: a failure is the change's, not the dice's. New ones are drawn
# by `--hypothesis-profile new`, and in the rotation of slow tests. No time decides a test.
settings.register_profile(
    "new", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("same", settings.get_profile("new"), derandomize=True)
settings.load_profile("same")

LEFT_OUT, REDRAWN = pytest.StashKey[int](), pytest.StashKey[int]()
OF_KAFKA = pytest.StashKey[int]()


def _call_inner(function, *args):
    """Call a function that only compiled code calls by a compiled function; from tests only."""
    frame = sys._getframe(1)
    # A function chosen by a type, or a compiled function that a test runs as plain Python.
    while frame.f_globals["__name__"].startswith("streamsvm._compile") or isinstance(
        frame.f_globals.get(frame.f_code.co_name), EntryDispatcher
    ):
        frame = frame.f_back
    caller = frame.f_globals["__name__"]
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
        help="run the slow tests of one part of N, with new draws of its property tests: I counts "
        "modulo N",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out slow tests, unless `-m` asks for them, `--part` for some, or a test is named.

    Tests that need Apache Kafka are left out with them, also in parts.
    Property tests draw new examples where `-m` asks for the slow tests, and in their own part.
    """
    _mark_long(config, items)
    part, are_asked_for = config.getoption("--part"), config.option.markexpr.startswith("slow")
    i, n = map(int, part.split("/")) if part else (0, int(are_asked_for))

    def is_in(name):
        return n > 0 and (zlib.crc32(name.encode()) - i) % n == 0

    tests = {item.nodeid.split("[")[0]: getattr(item, "function", None) for item in items}
    redrawn = [test for name, test in tests.items() if hasattr(test, "hypothesis") and is_in(name)]
    for test in redrawn:
        seed(secrets.randbits(64))(test)
    config.stash[REDRAWN] = len(redrawn)
    if part is None and (config.option.markexpr or any("::" in arg for arg in config.args)):
        return
    slow = [(item, item.get_closest_marker("slow")) for item in items]
    # What compiles the same is in the same part.
    named = [(item, mark.args[0] if mark.args else item.nodeid) for item, mark in slow if mark]
    left_out = [item for item, name in named if not is_in(name)]
    of_kafka = [item for item in items if item.get_closest_marker("kafka")]
    left_out = list(dict.fromkeys(left_out + of_kafka))
    if left_out:
        items[:] = [item for item in items if item not in set(left_out)]
        config.hook.pytest_deselected(items=left_out)
        config.stash[LEFT_OUT] = len(left_out) - len(of_kafka)
        config.stash[OF_KAFKA] = len(of_kafka)


def _mark_long(config, items):
    """Mark the tests of `LONG` as slow; an error if one of them is not there any more."""
    for item in items:
        if item.nodeid in LONG:
            item.add_marker(pytest.mark.slow)
    found = {item.nodeid for item in items}
    files = {name.partition("::")[0] for name in found}
    gone = {name for name in LONG if name.partition("::")[0] in files} - found
    are_all = not (config.option.keyword or config.option.markexpr)
    if gone and are_all and not any("::" in arg for arg in config.args):
        raise pytest.UsageError(
            f"tests/long_cases.txt names tests that are not there: {sorted(gone)}"
        )


def pytest_terminal_summary(terminalreporter, config):
    if n := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(f"{n} slow tests left out: pytest -m slow")
    if n := config.stash.get(OF_KAFKA, 0):
        terminalreporter.write_line(f"{n} tests with Apache Kafka left out: pytest -m kafka")
    if n := config.stash.get(REDRAWN, 0):
        terminalreporter.write_line(f"{n} property tests drew new examples")
