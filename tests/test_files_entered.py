"""How many files an engineer meets who follows one event, or one batch, through a learner."""

import sys
from pathlib import Path

import numpy as np
import pytest

import streamsvm
from streamsvm import AdaptiveSVMClassifier, LASVMClassifier

HOME = Path(streamsvm.__file__).parent
LOWER = ("solvers", "support", "kernels", "_compile")
"""Not counted: the layers that a reader of learners and models takes as given."""


def _entered(call):
    """Return the files above the solvers of which `call` runs a function."""
    found = set()

    def note(frame, event, _):
        if event == "call":
            found.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    inside = (Path(name) for name in found if name.startswith(str(HOME)))
    names = {path.relative_to(HOME).as_posix() for path in inside}
    return sorted(name for name in names if not name.startswith(LOWER))


def _learner(make):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1200, 4)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).tolist()
    learner = make()
    learner.learn_many(x[:1000], y[:1000])
    events = [dict(enumerate(row)) for row in x[1000:].tolist()]
    for event, label in zip(events[:150], y[1000:], strict=False):
        learner.predict_one(event)
        learner.learn_one(event, label)
    return learner, events[150], y[1150], x[1100:], y[1100:]


@pytest.mark.parametrize(
    ("make", "of_event", "of_batch"), [(LASVMClassifier, 8, 26), (AdaptiveSVMClassifier, 8, 33)]
)
def test_few_files_are_entered(make, of_event, of_batch):
    learner, event, label, x, y = _learner(make)
    files = _entered(lambda: (learner.predict_one(event), learner.learn_one(event, label)))
    assert 0 < len(files) <= of_event, files
    files = _entered(lambda: learner.learn_many(x, y))
    assert 0 < len(files) <= of_batch, files
