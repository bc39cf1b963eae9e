import os
import zlib

import pytest
from hypothesis import settings

from streamsvm.learners.bases import rehearsal

# On CI the draws are the same every time: a failure there is the change's, not the dice's.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("default", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")


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
        help="of the slow tests, those of one part of N only: I counts modulo N",
    )


def pytest_collection_modifyitems(config, items):
    """Leave out the slow tests of other parts: see `--part`."""
    if part := config.getoption("--part"):
        i, n = map(int, part.split("/"))
        others = [x for x in items if zlib.crc32(x.nodeid.encode()) % n != i % n]
        items[:] = [x for x in items if x not in set(others)]
        config.hook.pytest_deselected(items=others)
