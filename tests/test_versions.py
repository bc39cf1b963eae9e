"""How often each function is compiled: once for each store, and for each bound of a solver."""

import json

import pytest

from streamsvm import _compile
from tests.programs import python

PROGRAM = """
import json, random, warnings
from streamsvm import _compile
from streamsvm.learners.bases import rehearsal
from streamsvm.learners.bases.registry import registered_learners

warnings.simplefilter("ignore")
rehearsal.is_on = False
draw = random.Random(0).random

def event(n_classes, are_words):
    x = {"a": 2.0 * draw() - 1.0, "b": 2.0 * draw() - 1.0}
    inner = x["a"] ** 2 + x["b"] ** 2 < 0.6
    y = int(inner) + int(n_classes > 2 and inner and x["a"] > 0.2)
    if are_words:
        x = {f"w{int(4000 * draw())}": 1.0 for _ in range(5)} | ({"in": 1.0} if y else {})
    return x, y

for learner in registered_learners("rows"):
    for parameters in learner.cls._unit_test_params():
        for are_words in (False, True):
            model = learner.cls(**parameters)
            for _ in range(200):
                x, y = event(2 if model.most_classes == 2 else 3, are_words)
                model.predict_one(x)
                model.learn_one(x, y)
            if hasattr(model, "predict_proba_one"):
                model.predict_proba_one(x)
            if hasattr(model, "finish"):
                model.finish()
print(json.dumps({
    f"{f.py_func.__module__}.{f.py_func.__name__}": len(f.overloads)
    for f in _compile.compiled_functions
    if hasattr(f, "overloads")
}))
"""


@pytest.mark.slow("all learners")
@pytest.mark.skipif(not _compile.JIT, reason="nothing is compiled")
def test_functions_are_compiled_once_for_each_store_and_bound(tmp_path):
    # What is compiled, not what a cache has.
    printed = python("-c", PROGRAM, seconds=None, NUMBA_CACHE_DIR=str(tmp_path))
    versions = json.loads(printed.splitlines()[-1])
    # Of one event and of a block of kernel values: by store, bound, and what stands for the kernel.
    most = {"_margins_at": 40, "_learn_at": 40, "fill_block": 24}
    # By store and bound, and where it is called by compiled code and by Python.
    too_many = {f: n for f, n in versions.items() if n > most.get(f.rpartition(".")[2], 9)}
    assert not too_many and sum(versions.values()) <= 400
