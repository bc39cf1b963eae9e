"""Values far away: they are clipped or refused, and do not ruin the scale."""

import numpy as np
import pyarrow as pa
import pytest

from streamsvm import (
    LASVMClassifier,
    SGDQNClassifier,
    StandardScaler,
    SVMSGDClassifier,
    load,
    save,
)
from streamsvm.errors import FeatureError
from streamsvm.features.matrices import Matrix
from tests.reference.slow_scaler import SlowFeature


def normal(n=4000, seed=0):
    """Return rows of two features, of which the first tells the class, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.5
    x = rng.normal(size=(n, 2))
    x[:, 0] += 2.0 * y - 1.0
    return x, y


def scaled(x, **parameters):
    """Return rows as each is scaled after it was learnt, and the scaler."""
    scaler = StandardScaler(**parameters)
    matrix = Matrix(list(range(x.shape[1])), x, None)
    return scaler.learn_transform_many(matrix).values, scaler


def streams():
    rng = np.random.default_rng(1)
    far = rng.normal(size=600)
    far[[3, 25, 26, 300]] = 1e30, -1e6, 1e9, 50.0
    level = rng.normal(size=600)
    level[200:] += 1e5
    smaller = 1e4 * rng.normal(size=600)
    smaller[200:] *= 1e-4
    rare = np.where(rng.random(600) < 0.01, rng.exponential(size=600), 0.0)
    return {
        "far": far,
        "level": level,
        "smaller": smaller,
        "larger": np.r_[rng.normal(size=300), 1e4 * rng.normal(size=300)],
        "rare": rare,
        "long tail": rng.standard_t(1.2, size=600),
    }


@pytest.mark.parametrize("name", streams())
@pytest.mark.parametrize("clip", [3.0, 10.0])
def test_events_and_batches_are_what_the_docstring_says(name, clip):
    scaler, slow, found, expected = StandardScaler(clip=clip), SlowFeature(clip), [], []
    values = streams()[name]
    for value in values.tolist():
        scaler.learn_one({0: value})
        slow.learn(value)
        found.append(scaler.transform_one({0: value})[0])
        expected.append(slow.scaled(value))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert scaler.statistics[0][0] == len(slow.counted)
    assert scaler.n_clipped.get(0, 0) == slow.n_clipped
    rows, many = scaled(values[:, None], clip=clip)
    np.testing.assert_array_equal(rows[:, 0], found)
    np.testing.assert_array_equal(many._statistics, scaler._statistics)


@pytest.mark.parametrize("at", [0, 1, 5, 19, 25, 300, 1000])
@pytest.mark.parametrize("value", [1e3, 1e6, -1e30])
def test_one_value_does_not_ruin_the_scale(at, value):
    x, _ = normal()
    x[at, 0] = value
    rows, scaler = scaled(x)
    assert np.abs(rows[-1000:].std(axis=0) - 1.0).max() < 0.6
    assert scaler.statistics[0][2] < 8.0 and (np.abs(rows) <= 10.0).all()


@pytest.mark.parametrize("change", [lambda x: x + 1e6, lambda x: x * 1e4, lambda x: x * 1e-4])
def test_a_change_of_level_or_scale_is_followed(change):
    x, _ = normal(6000)
    x[2000:] = change(x[2000:])
    rows, _ = scaled(x)
    assert (rows[-1000:].std(axis=0) > 0.4).all() and (rows[-1000:].std(axis=0) < 1.5).all()
    assert (np.abs(rows[-1000:].mean(axis=0)) < 0.5).all()


def test_rare_values_are_kept_apart_from_zeros_and_from_each_other():
    rng = np.random.default_rng(3)
    x = np.zeros((20_000, 2))
    for feature, share in enumerate((0.01, 0.001)):
        present = rng.random(len(x)) < share
        x[present, feature] = np.where(rng.random(present.sum()) < 0.5, 1.0, 3.0)
    rows, _ = scaled(x)
    late, values = rows[10_000:], x[10_000:]
    for feature in range(2):
        at = {v: late[values[:, feature] == v, feature].mean() for v in (0.0, 1.0, 3.0)}
        assert abs(at[0.0]) < 0.2 and at[1.0] > 3.0 and at[3.0] >= at[1.0]
        if feature == 0:
            assert at[3.0] > at[1.0] + 3.0


def test_without_a_limit_it_is_the_plain_mean_and_variance():
    x, _ = normal()
    x[300] = 1e9
    _, scaler = scaled(x, clip=None)
    count, mean, variance = scaler.statistics[0]
    assert count == len(x) and scaler.n_clipped == {}
    assert mean == pytest.approx(x[:, 0].mean()) and variance == pytest.approx(x[:, 0].var())


@pytest.mark.parametrize("learner", [LASVMClassifier, SVMSGDClassifier, SGDQNClassifier])
@pytest.mark.parametrize(("at", "value"), [(1500, 1e6), (1, 1e30), (300, 1e30)])
def test_learners_recover(learner, at, value):
    x, y = normal(4000)
    x[at] = value, 0.0
    rows, _ = scaled(x)
    predicted = learner().predict_then_learn_many(rows, y)
    assert (np.array(predicted) == y)[-1500:].mean() > 0.8


def test_far_values_are_refused_by_choice():
    x, _ = normal(500)
    scaler, names = StandardScaler(reject=100.0), ("a", "b")
    for row in x.tolist():
        scaler.learn_one(dict(zip(names, row, strict=True)))
    before, copied = scaler.statistics, scaler._statistics.copy()
    with pytest.raises(FeatureError, match="'b' is -1000000.0: more than reject=100 standard dev"):
        scaler.learn_one({"a": 1.0, "b": -1e6})
    with pytest.raises(FeatureError, match="reject=100"):
        scaler.learn_one({"a": 1.0, "b": -1e6, "new": 1.0})
    assert scaler.statistics == before
    table = pa.table({"a": [0.0, 1.0, 1e6, 2.0], "b": [0.0, 1.0, 0.0, 1.0]})
    with pytest.raises(FeatureError, match="row 2: feature 'a' is 1000000.0"):
        scaler.learn_many(table)
    np.testing.assert_array_equal(scaler._statistics, copied)
    assert scaler.transform_one({"b": -1e6}) == {"b": -10.0}
    scaler.learn_one({"a": 30.0, "b": 0.0})
    assert scaler.n_clipped == {"a": 1}


def test_refused_rows_are_left_out_and_the_others_learnt():
    x, _ = normal(500)
    bad = x.copy()
    bad[[100, 400]] = 1e6, 0.0
    good = np.delete(x, [100, 400], axis=0)
    scaler, other = StandardScaler(reject=1e3), StandardScaler(reject=1e3)
    rows, refused = scaler.learn_transform_usable(Matrix(["a", "b"], bad, None))
    assert np.flatnonzero(refused >= 0).tolist() == [100, 400] and refused[100] == 0
    expected = other.learn_transform_many(Matrix(["a", "b"], good, None)).values
    np.testing.assert_array_equal(rows.values[refused < 0], expected)
    assert scaler.statistics == other.statistics


def test_files_keep_limits_and_recent_values(tmp_path):
    x = streams()["level"][:, None]
    scaler, path = StandardScaler(clip=5.0, reject=1e9), tmp_path / "scaler.svm"
    scaler.learn_many(x[:350])
    save(scaler, path)
    again = load(path)
    assert (again.clip, again.reject) == (5.0, 1e9)
    for some in (scaler, again):
        some.learn_many(x[350:])
    np.testing.assert_array_equal(again._statistics, scaler._statistics)
