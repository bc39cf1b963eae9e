"""Kernels bound to a store: the same values, by an address that never leaves the process."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import types
from numba.core.errors import TypingError

from streamsvm import LASVMClassifier, kernels
from streamsvm._compile import JIT, compiled
from streamsvm.errors import ParameterError
from streamsvm.support import stores
from streamsvm.support.kernel_rows import bound_kernels
from streamsvm.support.kernel_rows.bound_kernels import DenseKernel, SparseKernel, bound
from streamsvm.support.kernel_rows.code_addresses import address_of_code, caller_of
from streamsvm.support.rows import sparse
from tests.kernels.test_values import KERNELS, Cosine, Manhattan, Quadratic
from tests.slow import slow_but

ROOT = Path(__file__).resolve().parents[2]
compiles = pytest.mark.skipif(not JIT, reason="nothing is compiled, and nothing has an address")


def problem(is_sparse, n=70, d=5):
    rng = np.random.default_rng(3)
    x = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)).astype(np.float32)
    rows = sparse(x) if is_sparse else x
    return stores.filled(stores.new_store(n, d, is_sparse), rows), rows


@compiled
def fill(kernel, store, x, n, d, out):
    stores.values(kernel, store, x, n, d, 0, n, out)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(
    "kernel",
    slow_but([*KERNELS, Cosine(0.7), Quadratic(2.0), Manhattan(0.3)], KERNELS[-1], Cosine(0.7)),
    ids=lambda k: repr(k),
)
def test_a_bound_kernel_has_the_same_values_to_the_last_bit(kernel, is_sparse):
    store, x = problem(is_sparse)
    capacity = store.entered.size
    own, by_address = np.zeros((2, 70, capacity), np.float32)
    fill(kernel, store, x, 70, 5, own)
    fill(bound(kernel, store), store, x, 70, 5, by_address)
    assert own.any()
    np.testing.assert_array_equal(own, by_address)


@compiles
def test_all_kernels_have_one_type_and_those_of_one_kind_one_address():
    store, _ = problem(False)
    a, b, other = (
        bound(kernel, store)
        for kernel in (kernels.RBF(gamma=1.0), kernels.RBF(gamma=2.0), kernels.Polynomial())
    )
    assert type(a) is type(b) is type(other) is DenseKernel
    assert a.address == b.address != other.address
    assert a.parameters.tolist() == [1.0] and other.parameters.tolist() == [3.0, 1.0, 1.0]
    assert type(bound(kernels.RBF(gamma=1.0), problem(True)[0])) is SparseKernel


@compiles
def test_what_is_bound_to_one_kind_of_store_is_refused_with_the_other():
    dense, x = problem(False)
    kernel = bound(kernels.Linear(), problem(True)[0])
    with pytest.raises(TypingError):
        fill(kernel, dense, x, 70, 5, np.zeros((70, dense.entered.size), np.float32))


@compiles
@pytest.mark.parametrize(
    "broken",
    [
        lambda x: np.asfortranarray(x),
        lambda x: x[:, ::2],
        lambda x: x.astype(np.float64),
        lambda x: x[0],
    ],
)
def test_rows_of_another_layout_or_type_are_refused_not_read(broken):
    store, x = problem(False)
    out = np.zeros((70, store.entered.size), np.float32)
    with pytest.raises(TypingError):
        fill(bound(kernels.Linear(), store), store, broken(x), 1, 2, out)


def test_what_is_no_kernel_is_refused():
    if JIT:
        with pytest.raises(ParameterError, match="not a registered kernel"):
            bound((1.0,), problem(False)[0])
    else:
        assert bound(kernels.Linear(), problem(False)[0]) == kernels.Linear()


@compiles
def test_an_address_is_given_only_for_the_result_that_is_declared():
    @compiled
    def half(x):
        return 0.5 * x

    with pytest.raises(TypeError, match="half returns float64, not int64"):
        address_of_code(half, types.int64(types.float64))


@compiles
def test_errors_of_what_is_called_by_address_are_raised():
    @compiled
    def checked(x):
        if x < 0:
            raise ValueError("below 0")
        return x + 1

    signature = types.int64(types.int64)
    call = caller_of(lambda x: signature)

    @compiled
    def caller(address, x):
        return call(address, x)

    address = address_of_code(checked, signature)
    assert caller(address, 2) == 3
    with pytest.raises(ValueError, match="below 0"):
        caller(address, -1)


def test_no_address_gets_into_a_pickle():
    model = LASVMClassifier(kernel=kernels.RBF(gamma=0.5))
    for i in range(8):
        model.learn_one({"a": float(i % 3), "b": float(i % 2)}, i % 2 == 0)
        model.predict_one({"a": float(i % 3), "b": 0.0})
    text = pickle.dumps(model)
    assert b"DenseKernel" not in text and b"bound_kernels" not in text
    for address, _ in bound_kernels._addresses.values():
        assert address.to_bytes(8, "little") not in text


@compiles
def test_a_later_process_compiles_nothing(tmp_path):
    program = """
import numpy as np
from streamsvm import _compiling, kernels
from streamsvm.support import stores
from streamsvm.support.kernel_rows.bound_kernels import bound
made = []
_compiling.watchers.append(made.append)
store = stores.new_store(3, 2, False)
out = np.zeros((1, 32), np.float32)
bound(kernels.Linear(), store)
print(len(made) > 0)
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    printed = [
        subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True,
            check=True, timeout=300,
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert printed == ["True", "False"]
