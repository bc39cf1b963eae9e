import pytest

from benchmarks.golden.problems import FOLDER


@pytest.fixture(autouse=True)
def _data() -> None:
    if not FOLDER.is_dir():
        pytest.skip(f"optional test data: no folder {FOLDER.name} beside the repository")
