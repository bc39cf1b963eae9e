"""Constructors: what they refuse, and that kernels are plain values."""

import copy
import math
import pickle
import re
from typing import NamedTuple

import numpy as np
import pytest

from streamsvm import LASVMClassifier, TrackingSVMClassifier, kernels
from streamsvm._compile import JIT
from streamsvm.errors import ParameterError
from streamsvm.kernels import registry

NAN, INF = float("nan"), float("inf")
BAD = [
    (kernels.Linear, "scale", value) for value in (0, -1.0, NAN, INF, "1", None, True)
] + [
    (kernels.RBF, "gamma", value) for value in (0, -0.5, NAN, INF, "auto", [1.0])
] + [
    (kernels.Polynomial, name, value)
    for name, values in (
        ("degree", (0, -1, 1.5, 101, NAN, INF, "3")),
        ("gamma", (0, -2.0, NAN, INF)),
        ("coef0", (-1e-9, NAN, INF)),
    )
    for value in values
]  # fmt: skip


@pytest.mark.parametrize(("kernel_type", "name", "value"), BAD)
def test_the_message_names_parameter_value_and_range(kernel_type, name, value):
    with pytest.raises(ParameterError) as caught:
        kernel_type(**{name: value})
    text = str(caught.value)
    assert text.startswith(f"{name}={value!r}: use a ")


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (kernels.Linear(), "Linear(scale=1.0)"),
        (kernels.Linear(scale=2), "Linear(scale=2.0)"),
        (kernels.RBF(gamma=3), "RBF(gamma=3.0)"),
        (kernels.Polynomial(), "Polynomial(degree=3.0, gamma=1.0, coef0=1.0)"),
        (kernels.Polynomial(5, 0.5, 0), "Polynomial(degree=5.0, gamma=0.5, coef0=0.0)"),
    ],
    ids=repr,
)
def test_repr_pickle_copies_and_hash(kernel, text):
    assert repr(kernel) == text
    assert all(type(value) is float for value in kernel)
    again = type(kernel)(**kernel._asdict())
    others = [again, copy.copy(kernel), copy.deepcopy(kernel)]
    others += [pickle.loads(pickle.dumps(kernel, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
    for other in others:
        assert type(other) is type(kernel)
        assert other == kernel and hash(other) == hash(kernel)
        kernels.check_kernel(other)
    assert kernel != type(kernel)(*(value + 1.0 for value in kernel))
    for name in (kernel._fields[0], "sigma"):
        with pytest.raises(AttributeError):
            setattr(kernel, name, 2.0)


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (kernels.RBF, "kernel=RBF is a type of kernels: give one with its parameters"),
        (kernels.RBF(gamma=1.0)._replace(gamma=-1.0), "gamma=-1.0: use a number above 0"),
        ("rbf", "kernel='rbf' is not a registered kernel: use one of"),
    ],
)
def test_what_is_no_kernel_is_refused(kernel, said):
    with pytest.raises(ParameterError, match=re.escape(said)):
        LASVMClassifier(kernel=kernel)


@pytest.mark.parametrize("of", ["dot", "distance", "vectors"])
def test_a_function_that_cannot_be_compiled_is_named(of):
    class Broken(NamedTuple):
        scale: float

    try:
        if of == "vectors":

            @kernels.register(Broken, of=of)
            def broken(kernel, x, z):
                return kernel.nothing * x[0]
        else:

            @kernels.register(Broken, of=of)
            def broken(kernel, product):
                return kernel.nothing * product

        model = LASVMClassifier(kernel=Broken(scale=1.0))
        if JIT:
            with pytest.raises(ParameterError, match=r"numba cannot compile broken \(.*, line \d+"):
                model.learn_one({"a": 1.0}, True)
            assert model.n_examples == 0
    finally:
        registry._values.pop(Broken, None)
        registry._products.pop(Broken, None)


class Sigmoid(NamedTuple):
    gamma: float


@pytest.mark.parametrize("learner", [LASVMClassifier, TrackingSVMClassifier])
def test_an_indefinite_kernel_is_warned_of_once(learner):
    if Sigmoid not in registry._values:
        kernels.register(Sigmoid, of="dot")(lambda kernel, dot: math.tanh(kernel.gamma * dot) + 1.0)
    x = np.random.default_rng(0).normal(size=(100, 2))
    model = learner(Sigmoid(1.0))
    with pytest.warns(UserWarning, match="is not positive definite") as caught:
        for row in x.tolist():
            model.learn_one(dict(enumerate(row)), row[0] * row[1] > 0)
    assert len(caught) == 1 and model.counters["indefinite_kernel"] > 1
    definite = learner(kernels.Linear())
    definite.learn_many(x, x[:, 0] > 0)
    assert "indefinite_kernel" not in definite.counters
