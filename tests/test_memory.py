"""A long file is read in a few record batches, whatever its row groups."""

import pytest

from tests.benchmarks.replay_memory import peak, write


@pytest.mark.parametrize("row_group", [50_000, 1_500_000], ids=["many_groups", "one_group"])
def test_replay_of_a_large_file(tmp_path, row_group):
    path = tmp_path / "stream.parquet"
    write(path, 1_500_000, row_group)
    idle, _ = peak()
    replay = ("replay", str(path), "--target", "label", "--limit", "5000", "--json", "--quiet")
    # The first run may compile, which takes memory of its own.
    peak(*replay)
    used, report = peak(*replay)
    # The rows are 240 MB; compiled code, buffers and the growing store take some 100 MB.
    assert used - idle - report["memory_bytes"] / 1e6 < 200
