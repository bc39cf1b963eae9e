"""Random Fourier features: a twin in plain NumPy, the kernel, events and batches."""

import hashlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamsvm import RandomFourierFeatures, SVMSGDClassifier
from streamsvm.features import frames
from streamsvm.features.names import LONGEST_NAME
from streamsvm.features.schema import Schema
from streamsvm.preprocessing.random_fourier import text_of
from tests.preprocessing.test_feature_maps import bananas, components
from tests.programs import python


def twin(x, gamma, n, seed):
    """Return the random features of an event, computed by NumPy as the docstrings say."""
    angles = np.zeros(n // 2)
    for name, value in x.items():
        text = f"{seed}:{name!r}".encode()
        words = np.frombuffer(hashlib.shake_128(text).digest(8 * n), np.uint64)
        u = ((words // 2**11).astype(float) + 1.0) / 2**53
        first, second = np.split(u, 2)
        angles += value * np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second)
    angles *= np.sqrt(2.0 * gamma)
    return np.concatenate([np.cos(angles), np.sin(angles)]) / np.sqrt(n // 2)


@pytest.mark.parametrize("seed", [0, 7])
def test_events_are_those_of_the_twin(seed):
    rng = np.random.default_rng(0)
    transformer = RandomFourierFeatures(gamma=0.3, n_components=64, seed=seed)
    for n in (0, 1, 3, 12):
        x = dict(zip("abcdefghijkl"[:n], rng.normal(size=n).tolist(), strict=True)) | {2: 1.5}
        np.testing.assert_allclose(
            components(transformer, x), twin(x, 0.3, 64, seed), rtol=0, atol=3e-7
        )


@pytest.mark.parametrize("gamma", [0.01, 0.2, 2.0])
def test_the_error_of_the_kernel_falls_as_the_square_root(gamma):
    x = np.random.default_rng(1).normal(size=(60, 8))
    k = np.exp(-gamma * ((x[:, None] - x[None]) ** 2).sum(2))
    errors = []
    for n in (64, 1024):
        squares = []
        for seed in range(8):
            z = RandomFourierFeatures(gamma, n, seed).transform_many(x).astype(float)
            np.testing.assert_allclose((z * z).sum(1), 1.0, atol=1e-6)
            squares.append(np.mean((z @ z.T - k) ** 2))
        errors.append(np.mean(squares) ** 0.5)
    # Of a pair of components the products have a variance of at most 1/2.
    assert errors[0] < 1.2 * np.sqrt(0.5 / 32)
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.2)


def test_part_of_a_sparse_batch():
    x = sp.random_array((30, 50), density=0.2, rng=3).tocsr()
    matrix = frames.matrix_of(x, Schema())
    part = matrix._replace(rows=matrix.rows._replace(start=matrix.rows.start[7:20]))
    transformer = RandomFourierFeatures(gamma=0.1, n_components=16)
    expected = transformer.transform_many(x)[7:19]
    np.testing.assert_array_equal(transformer.transform_matrix(part).values, expected)


@settings(max_examples=50, deadline=None)
@given(
    x=st.dictionaries(st.text(max_size=3), st.floats(-1e6, 1e6, width=32), max_size=6),
    largest=st.just({}),
)
# Nothing is left of angles so large, but no component is NaN or out of range.
@example(x={"a": 3.4e38, "b": -3.4e38}, largest={"gamma": 1.7e308, "seed": 2**31 - 1})
def test_all_components_are_in_range_and_the_order_does_not_matter(x, largest):
    parameters = {"gamma": 1e3, "n_components": 8} | largest
    transformer, other = (RandomFourierFeatures(**parameters) for _ in range(2))
    z = components(transformer, x)
    assert np.abs(z).max() <= 0.5 + 1e-6
    assert z @ z == pytest.approx(1.0, abs=1e-5) or largest
    for name in reversed(x):
        other.transform_one({name: 1.0})
    np.testing.assert_array_equal(components(other, dict(reversed(x.items()))), z)


def test_another_process_draws_the_same():
    code = (
        "from streamsvm import RandomFourierFeatures as R\n"
        "x = {'b': 1.0, ('a', 1): 2.0}\n"
        "print(list(R(gamma=1.0, n_components=8, seed=3).transform_one(x).values()))"
    )
    own = RandomFourierFeatures(gamma=1.0, n_components=8, seed=3)
    assert python("-c", code).strip() == str(
        list(own.transform_one({("a", 1): 2.0, "b": 1.0}).values())
    )


def test_equal_names_are_one_and_different_names_are_not():
    assert text_of(1) == text_of(1.0) == text_of(True) == text_of(np.int64(1))
    assert text_of("a") == text_of(np.str_("a")) and text_of(("a", 1)) == text_of(("a", 1.0))
    texts = [text_of(n) for n in (1, "1", b"1", 1.5, (1,), ("1",), ("1", 1), ("1,1",), -1, -2)]
    assert len(set(texts)) == len(texts)
    transformer = RandomFourierFeatures(gamma=1.0, n_components=8)
    assert components(transformer, {"a" * (LONGEST_NAME + 1): 1.0, "b": 2.0}) == pytest.approx(
        components(transformer, {"b": 2.0})
    )


def test_many_names_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr("streamsvm.preprocessing.random_fourier._MOST_NUMBERS", 400)
    transformer = RandomFourierFeatures(gamma=1.0, n_components=8)
    first = components(transformer, {"0": 1.0, "1": 2.0})
    for i in range(1000):
        transformer.transform_one({str(i): 1.0})
    assert len(transformer._directions._known) <= 100 and len(transformer._event_maps) <= 64
    np.testing.assert_array_equal(components(transformer, {"1": 2.0, "0": 1.0}), first)


@pytest.mark.parametrize("value", [1e9, 1e20, -1e30, 3e38])
def test_huge_values_have_features_of_length_one_that_are_not_those_of_zero(value):
    mapped = RandomFourierFeatures(gamma=1.0, n_components=64)
    zero, z = (np.array(list(mapped.transform_one({"a": a}).values())) for a in (0.0, value))
    assert z @ z == pytest.approx(1.0, abs=1e-3) and abs(z @ zero) < 0.5
    batch = mapped.transform_many(pa.table({"a": [value]}))
    sparse = frames.matrix_of(sp.csr_matrix([[value]]), Schema())
    assert np.array_equal(batch[0], z.astype(np.float32))
    assert mapped.transform_matrix(sparse).values @ mapped.transform_matrix(sparse).values.T > 0.99


def test_rivers_batches():
    _, x, y = bananas()
    frame = pd.DataFrame(x, columns=["1", "2"])
    model = RandomFourierFeatures(gamma=1.0) | SVMSGDClassifier()
    model.learn_many(frame[:3000], pd.Series(y[:3000]))
    predicted = model.predict_many(frame[3000:])
    assert list(predicted.index) == list(frame.index[3000:])
    assert np.mean(predicted.to_numpy() != y[3000:]) < 0.12
