"""Constructors: what they refuse, and that kernels are plain values."""

import copy
import pickle

import pytest

from streamsvm import kernels
from streamsvm.errors import ParameterError

NAN, INF = float("nan"), float("inf")
BAD = [
    (kernels.Linear, "scale", value) for value in (0, -1.0, NAN, INF)
] + [
    (kernels.RBF, "gamma", value) for value in (0, -0.5, NAN, INF)
] + [
    (kernels.Polynomial, name, value)
    for name, values in (
        ("degree", (0, -1, 1.5, 101, NAN, INF)),
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


def test_other_parameters_make_another_kernel():
    assert kernels.RBF(gamma=1.0) != kernels.RBF(gamma=1.5)
    assert kernels.Polynomial(degree=2) != kernels.Polynomial(degree=3)


def test_kernels_cannot_be_changed():
    kernel = kernels.RBF(gamma=1.0)
    with pytest.raises(AttributeError):
        kernel.gamma = 2.0
    with pytest.raises(AttributeError):
        kernel.sigma = 2.0
