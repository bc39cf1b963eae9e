"""The functions that event paths call by address: of each type of state, kernel and schedule."""

import numpy as np
import pytest
from numba import typeof

from streamsvm import LASVMClassifier, _compile, kernels
from streamsvm._compile import JIT
from streamsvm.solvers import one_event
from streamsvm.support import dense_store, sparse_store

pytestmark = pytest.mark.skipif(not JIT, reason="there are no addresses without the compiler")


def arguments(n=20, **parameters):
    learner = LASVMClassifier(**{"kernel": kernels.RBF(gamma=1.0)} | parameters)
    x = np.random.default_rng(0).normal(size=(n, 3))
    learner.learn_many(x, (x[:, 0] > 0.0).tolist())
    model = learner.model
    is_sparse = model.is_sparse
    spare = (sparse_store if is_sparse else dense_store).new_store(1, 3)
    parts = model.state, model.bound_kernel(model.state), model.event_parts()[2], spare
    return *parts, 1, is_sparse


def addresses(**parameters):
    return one_event.solver_for(*arguments(**parameters))[:2]


def test_a_solver_is_looked_up_by_the_types_of_what_it_works_with():
    known = addresses()
    n_known = len(one_event._addresses)
    # A larger state is of the same type.
    assert addresses(n=300, C=0.1) == known
    assert len(one_event._addresses) == n_known
    others = [addresses(sparse=True), addresses(window=10)]
    assert len({*known, *others[0], *others[1]}) == 6


def test_a_state_is_at_the_address_that_the_words_say():
    state, kernel, schedule, spare, *_ = arguments(sparse=True)
    parts = one_event.Parts(state, kernel, schedule, spare, 17)

    @_compile.compiled
    def read(address, kind):
        found = _compile.reference_at(address, kind)
        state, store = found.state, found.spare
        return (
            state.alpha.sum() + state.block.shape[1] + store.start.size + found.learn_rows,
            found.schedule.bounds.limit,
        )

    words = np.array(_compile.words_of(parts))
    total, limit = read(words.ctypes.data, typeof(parts))
    expected = state.alpha.sum() + state.block.shape[1] + spare.start.size + 17
    assert (total, limit) == (expected, schedule.bounds.limit)
    with pytest.raises(TypeError, match="not str"):
        _compile.words_of(one_event.Parts(state, kernel, schedule, spare, "17"))
