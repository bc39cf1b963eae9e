import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streamsvm.monitor import plots
from streamsvm.monitor.history import History
from streamsvm.monitor.series import charts


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
