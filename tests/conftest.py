import os

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
