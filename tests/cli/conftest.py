"""What the tests of the command share: a folder for each, and ways to run it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamsvm.cli.main import main


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run the command, which ends with a code; return what it says, as (out, err)."""

    def run_command(*arguments: object, code: int = 0) -> Any:
        capsys.readouterr()
        try:
            found = main([*map(str, arguments)])
        except SystemExit as end:
            found = end.code
        said = capsys.readouterr()
        assert found == code, said.err
        assert "Traceback" not in said.err
        return said

    return run_command


@pytest.fixture
def replay(run: Callable[..., Any]) -> Callable[..., Any]:
    """Replay a file whose target is y, if no other one is named."""

    def run_replay(*arguments: object, code: int = 0) -> Any:
        return run("replay", "--target=y", *arguments, code=code)

    return run_replay


@pytest.fixture
def predict(run: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments, code=0: run("predict", *arguments, code=code)


@pytest.fixture
def report(replay: Callable[..., Any]) -> Callable[..., Any]:
    """Replay a file; return the report."""
    return lambda *arguments, code=0: json.loads(
        replay(*arguments, "--json", "--quiet", code=code).out
    )


def columns(n: int = 600, seed: int = 0) -> dict[str, Any]:
    """Return two numbers, a text that tells nothing, and a label that the numbers tell."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    return {"a": a, "b": b, "t": rng.choice(["x", "y"], n), "y": a * b > 0}


def write(name: str = "data.parquet", **changed: Any) -> str:
    """Write a file of these columns, some of them changed, or left out: None."""
    Path(name).parent.mkdir(exist_ok=True)
    table = {k: v for k, v in (columns() | changed).items() if v is not None}
    pq.write_table(pa.table(table), name)
    return name


@pytest.fixture(scope="session")
def _learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learnt")
    data = write(str(folder / "data.parquet"))
    model = str(folder / "m.svm")
    assert main(["replay", data, "--target", "y", "--save", model, "--quiet"]) == 0
    return folder


@pytest.fixture
def learnt(_learnt: Path, _folder: None) -> Path:
    """Return the file of a model, which has learnt `data.parquet` beside it."""
    for path in _learnt.iterdir():
        shutil.copy(path, path.name)
    return Path("m.svm")
