"""The scripts that redo the papers' figures, on small generated files of the same shape."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.programs import python

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "papers"
SCRIPTS = [
    path for kind in ("figure", "sbp_", "thesis_") for path in sorted(FOLDER.glob(f"{kind}*.py"))
]
WITH_LIBSVM = ("4_1", "4_11", "4_16", "4_3", "4_9", "5_2", "sbp_figures")
PLOTS = {
    **{f"figure{i}": [f"figure{i}"] for i in (2, 3, 4, 5, 6)},
    "sbp_figures": [f"sbp_figure_{i}_{name}" for i in (2, 3) for name in ("adult", "mnist")],
    "thesis_curriculum": [
        f"thesis_curriculum_{system}_{figure}"
        for system in ("tracking", "lasvm")
        for figure in ("kappa", "seen_gap")
    ],
    "thesis_figure_3_2": [
        f"thesis_figure_3_{i}_{name}_{across}"
        for i in (1, 2)
        for name in ("adult", "covertype")
        for across in ("passes", "seconds")
    ],
    "thesis_figure_4_10": [f"thesis_figure_4_10{part}" for part in ("", "_seconds", "_vectors")],
    "thesis_figure_4_11": [
        f"thesis_figure_4_{i}{part}" for i in (11, 13, 14) for part in ("", "_seconds", "_vectors")
    ],
    "thesis_figure_4_16": ["thesis_figure_4_16_usps-0", "thesis_figure_4_16_reuters"],
    "thesis_figure_4_3": [
        f"thesis_figure_4_3_{part}"
        for part in ("error", "seconds", "vectors", "seconds_by_vectors")
    ],
    "thesis_figure_4_9": ["thesis_figure_4_9"],
    "thesis_figure_5_1": ["thesis_figure_5_1_letter", "thesis_figure_5_1_usps"],
    "thesis_figure_5_3": [f"thesis_figure_5_{i}" for i in (3, 4, 5, 6)],
    "thesis_figure_6_3": ["thesis_figure_6_3", "thesis_figure_6_4"],
    "thesis_table_4_1": [f"thesis_figure_4_{i}" for i in (5, 6, 7, 8)],
    "thesis_table_4_3": [],
    "thesis_table_5_2": [],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, d, n in (("adult", 10, 300), ("mnist", 12, 300)):
        for part in ("train", "test"):
            x = rng.integers(0, 2 if name == "adult" else 256, (n, d))
            first = x[:, 0] > x[:, 1:].mean(axis=1)
            label = np.where(first, 1, -1) if name == "adult" else np.where(first, 8, 3)
            columns = {f"f{i}": column for i, column in enumerate(x.T)} | {"label": label}
            pq.write_table(pa.table(columns), folder / f"{name}_{part}.parquet")
    write_more(folder, rng)
    return folder


def write_more(folder, rng):
    """Write the data of the thesis' scripts: small, of the same shape."""
    files = {
        "letter_train": ("A", "B", "C"),
        "letter_test": ("A", "B", "C"),
        "usps_train": (0, 1, 2),
        "usps_test": (0, 1, 2),
        "banana": (False, True),
        "covtype_first20k": (1, 2),
    }
    for name, labels in files.items():
        k = rng.integers(0, len(labels), 150)
        x = rng.integers(0, 16, (150, 4)) / 8 - 1 + k[:, None]
        columns = {f"f{i}": column for i, column in enumerate(x.T)}
        columns["label"] = np.array(labels)[k]
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    chunks = [["B-NP", "I-NP", "O"][: 1 + i % 3] for i in range(96)]
    words = [[label[0] + str(i % 5) for label in row] for i, row in enumerate(chunks)]
    sentences = {"tokens": words, "pos": chunks, "chunks": chunks}
    pq.write_table(pa.table(sentences), folder / "conll2000_train.parquet")
    for part in ("train", "test"):
        y = rng.choice(["a", "b"], 90)
        letters = {"word_id": np.arange(90) // 4, "position": np.arange(90) % 4}
        letters |= {"p0": (y == "a") + 0.0, "p1": rng.random(90), "label": y}
        pq.write_table(pa.table(letters), folder / f"ocr_letters_{part}.parquet")
    for part in ("train", "test"):
        y = rng.choice([-1, 1], 150)
        indices = [[int(k > 0), 2 + i % 5] for i, k in enumerate(y.tolist())]
        values = pa.array([[0.8, 0.6]] * 150, pa.list_(pa.float32()))
        columns = {"indices": pa.array(indices, pa.list_(pa.int32())), "values": values, "label": y}
        pq.write_table(pa.table(columns), folder / f"reuters_moneyfx_{part}.parquet")


def test_all_scripts_are_there():
    assert [script.stem for script in SCRIPTS] == list(PLOTS)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_tables_and_figures_are_made(script, data, tmp_path):
    options = ["--runs", 2] if script.stem.startswith("figure") else []
    options += ["--libsvm"] if script.stem.endswith(WITH_LIBSVM) else []
    printed = python(script, "--data", data, "--out", tmp_path, "--limit", 80, *options)
    tables = [path.read_text() for path in sorted(tmp_path.glob("*.md"))]
    assert tables and printed == "\n".join(tables) and not re.search(r"\bnan\b", printed)
    for table in tables:
        lines = table.splitlines()
        assert len(lines) >= 4 and len({line.count("|") for line in lines}) == 1
    for name in PLOTS[script.stem]:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Three made-up digits of 10 x 10 pixels in files like MNIST's."""
    folder, rng = tmp_path_factory.mktemp("digits"), np.random.default_rng(0)
    shapes = rng.integers(0, 256, (3, 10, 10))
    shapes[:, [0, 1, -2, -1]] = shapes[:, :, [0, 1, -2, -1]] = 0
    for part in ("train", "test"):
        label = rng.integers(0, 3, 200)
        pixels = (shapes[label] * rng.random((200, 1, 1))).astype(np.uint8).reshape(200, -1)
        columns = {f"p{i}": column for i, column in enumerate(pixels.T)} | {"label": label}
        pq.write_table(pa.table(columns), folder / f"mnist_{part}.parquet")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("selection", ["margin", "active"])
def test_deformed_digits_are_learnt(selection, digits, tmp_path):
    script = FOLDER / "deformed_digits.py"
    options = ["--limit", 700, "--selection", selection, "--cache-mb", 10, "--validate", 50]
    printed = python(script, "--data", digits, "--out", tmp_path, *options)
    table = (tmp_path / f"deformed_digits_{selection}.md").read_text()
    assert printed == table
    seen, learnt, vectors, error, *_ = table.splitlines()[-1].strip("| ").split(" | ")
    # An epoch has 150 digits.
    assert seen == "750, finished" and 0 < int(vectors) <= int(learnt) < 750 and float(error) < 10
    assert (tmp_path / f"deformed_digits_{selection}.png").read_bytes().startswith(b"\x89PNG")


def test_digits_are_deformed_a_little(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import deformed_digits

    image = np.zeros((1, 24, 24), np.float32)
    image[0, 8:16, 8:16] = 1.0
    images = image.reshape(1, -1).repeat(50, axis=0)
    deformed = deformed_digits.Deformed(24, seed=0)(images)
    again = deformed_digits.Deformed(24, seed=0)(images)
    assert np.array_equal(deformed, again) and deformed.dtype == np.float32
    assert len(np.unique(deformed, axis=0)) == 50
    assert deformed.min() >= 0.0 and deformed.max() <= 1.0
    # The area stays about the same, and so does the middle of the square.
    assert deformed.sum(axis=1).mean() == pytest.approx(64, rel=0.1)
    assert deformed.reshape(50, 24, 24)[:, 11:13, 11:13].min() > 0.9
    assert deformed.reshape(50, 24, 24)[:, [0, -1]].max() == 0.0
