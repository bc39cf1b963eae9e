import os

from hypothesis import settings

# On CI the draws are the same every time: a failure there is the change's, not the dice's.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("default", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")
