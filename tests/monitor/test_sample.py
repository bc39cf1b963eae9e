"""The sample of examples and the history of records: even and bounded."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm.monitor import plots
from streamsvm.monitor.history import History
from streamsvm.monitor.sample import ReservoirSample
from streamsvm.monitor.series import charts


def offered(size, window, n, seed, batch=7):
    sample = ReservoirSample(size, window, seed)
    numbers = np.arange(1, n + 1)
    x = numbers[:, None].astype(np.float32)
    for start in range(0, n, batch):
        part = slice(start, start + batch)
        ones = np.ones(len(numbers[part]))
        sample.offer(x[part], ones, 2 * ones, numbers[part])
    return sample


@pytest.mark.parametrize(("window", "n"), [*((None, n) for n in (0, 5, 20, 300)), (100, 300)])
def test_a_reservoir_is_uniform_over_all_or_the_last(window, n):
    counts = np.zeros(n)
    for seed in range(400):
        sample = offered(20, window, n, seed)
        if window is None:
            assert len(sample.numbers) == min(n, 20) == len(set(sample.numbers.tolist()))
        else:
            sample.forget_old()
        counts[sample.numbers - 1] += 1
    about = np.arange(n) >= n - (window or n)
    share = np.where(about, 20 / max(about.sum(), 20), 0.0)
    # Five standard deviations.
    assert (np.abs(counts / 400 - share) <= 5 * np.sqrt(share * (1 - share) / 400) + 1e-12).all()


def test_a_window_is_bounded_without_being_asked():
    assert len(offered(20, 100, 5000, 0).numbers) <= 80


def test_how_the_stream_is_cut_does_not_matter():
    a, b = offered(20, None, 300, 3, batch=1), offered(20, None, 300, 3, batch=300)
    assert a.numbers.tolist() == b.numbers.tolist()


def test_a_draw_leaves_out_what_is_kept_and_widens_rows():
    sample = offered(20, None, 20, 0)
    x, classes, weights = sample.draw(5, 3, np.arange(1, 16))
    assert sorted(x[:, 0]) == [16, 17, 18, 19, 20] and not x[:, 1:].any()
    assert (classes == 1).all() and (weights == 2).all()
    assert len(sample.draw(3, 1, np.zeros(0, np.int64))[0]) == 3


@pytest.mark.parametrize(("window", "n"), [(None, 300), (None, 20), (200, 300)])
def test_what_is_forgotten_leaves_the_sample(window, n):
    sample = offered(40, window, n, 1)
    gone = sample.numbers[::3].copy()
    left = sample.without(gone, None)
    assert not np.isin(gone, left.numbers).any()
    # A full one stays full: the next example enters with its own chance.
    assert len(left) == (40 if n == 300 and window is None else len(sample) - len(gone))
    x, _, _ = left.draw(100, 1, np.zeros(0, np.int64))
    assert x.ravel().tolist() == left.numbers.tolist()
    assert not np.isin(gone, left.state()[1]["_numbers"]).any()
    assert len(left.without(left.numbers, None)) == 0


@given(st.integers(2, 20), st.integers(0, 300))
def test_records_are_evenly_spaced_and_bounded(most, n):
    history = History(most)
    for i in range(n):
        history.add({"i": i})
    kept = [history[k]["i"] for k in range(len(history))]
    assert kept == list(range(0, n, history.kept_every)) and len(kept) <= most
    assert history.kept_every == 1 or len(kept) >= most // 2


def test_columns_have_types_and_nulls():
    history = History()
    history.add({"a": 1, "b": 0.5, "c": None, "d": "learning"})
    history.add({"a": 2, "b": None, "c": None, "d": "learning", "e": 3})
    table = history.to_arrow()
    assert table.schema.types == [
        pa.int64(), pa.float64(), pa.float64(), pa.string(), pa.int64(),
    ]  # fmt: skip
    assert table["e"].to_pylist() == [None, 3] and table["b"].to_pylist() == [0.5, None]
    assert table.schema.metadata == {b"streamsvm.kept_every": b"1"}


def test_of_two_equal_lines_of_a_plot_both_are_seen():
    records = [{"rows": n, "accuracy": 0.8, "balanced_accuracy": 0.8} for n in (100, 200)]
    drawn = plots._drawn(charts(None, [], records)["accuracy"])
    first, second = drawn.axes[0].get_lines()
    assert first.get_ydata().tolist() == second.get_ydata().tolist()
    # The one above has gaps, through which a wider one is seen.
    assert second.get_linestyle() == "--" and first.get_linestyle() == "-"
    assert first.get_linewidth() > second.get_linewidth()
