"""A long file is read in a few record batches, whatever its row groups."""

import pytest

from benchmarks.replay_memory import peak, write
from tests.slow import slow


@slow
@pytest.mark.parametrize("row_group", [50_000, 1_500_000])
def test_replay_of_a_large_file(tmp_path, row_group):
    small, large = tmp_path / "small.parquet", tmp_path / "large.parquet"
    write(small, 5_000, 5_000)
    write(large, 1_500_000, row_group)
    options = ("--target", "label", "--limit", "5000", "--json", "--quiet")
    # The first run may compile, which takes memory of its own.
    peak("replay", str(small), *options)
    least, _ = peak("replay", str(small), *options)
    used, _ = peak("replay", str(large), *options)
    # The rows are 240 MB; batches that are read ahead take some 50 to 90.
    assert used - least < 150
