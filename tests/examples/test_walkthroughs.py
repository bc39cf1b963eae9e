"""The walk-throughs, each in a process of its own; three of them need optional data."""

import re

import pytest

from benchmarks.golden.problems import FOLDER
from tests.programs import ROOT, python

SCRIPTS = sorted((ROOT / "examples" / "walkthroughs").glob("*.py"))
GALLERY = ROOT / "docs" / "gallery.md"


def run(name, folder, *arguments):
    """Run a script in an empty folder; return what it printed."""
    pytest.importorskip("matplotlib", reason="pip install matplotlib")
    script = ROOT / "examples" / "walkthroughs" / f"{name}.py"
    home = {"PATH": "", "HOME": str(folder), "MPLBACKEND": "Agg"}
    printed = python(script, *arguments, folder=folder, seconds=None, **home)
    assert len(printed.splitlines()) <= 8
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    return printed


def data(name):
    path = FOLDER / f"{name}.parquet"
    if not path.is_file():
        pytest.skip(f"optional data set {path.name} is not beside the repository")
    return str(path)


def numbers(pattern, printed):
    """Return the numbers in the line of a pattern, in which N stands for a number."""
    found = re.search(pattern.replace("N", r"([\d.,]+)"), printed)
    assert found, printed
    return [float(number.replace(",", "")) for number in found.groups()]


@pytest.mark.slow
def test_fraud_late_labels(tmp_path):
    pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")
    printed = run("fraud_late_labels", tmp_path)
    # The first run ends half way; the second one continues to the end.
    pattern = "N payments, N chargebacks so far\nN payments, N chargebacks so far"
    first, _, last, chargebacks = numbers(pattern, printed)
    assert 12_000 < first < 14_000 and last == 25_000 and 690 < chargebacks < 730
    scores = "N% of the frauds found, N% of the alarms right"
    at_once = numbers(f"labels at once: {scores}", printed)
    late = numbers(f"chargebacks as they come: {scores}", printed)
    assert at_once[0] > 90 and at_once[1] > 60
    assert 75 < late[0] <= at_once[0] + 1 and 20 < late[1] < at_once[1]


@pytest.mark.slow
def test_spam_text(tmp_path):
    printed = run("spam_text", tmp_path, "--data", data("sms_spam"), "--limit", "2000")
    scores = "accuracy N%, recall N%, precision N%"
    for name in ("LASVM", "linear SVM", "naive Bayes"):
        assert numbers(f"{name}: {scores}", printed)[0] > 93
    assert numbers(f"LASVM: {scores}", printed)[2] > 94
    assert "txt" in printed.splitlines()[-1]


@pytest.mark.slow
def test_electricity_drift(tmp_path):
    printed = run("electricity_drift", tmp_path, "--data", data("elec2"), "--limit", "8000")
    repeated = numbers(r"last label again +N%", printed)[0]
    window = numbers(r"LASVM, window of 200 +N%", printed)[0]
    assert 80 < repeated < window
    assert window > numbers(r"LASVM, all examples +N%", printed)[0]
    constant = numbers(r"SVMSGD, constant rate +N%", printed)[0]
    assert constant > numbers(r"SVMSGD, falling rate +N%", printed)[0]


@pytest.mark.slow
def test_digits_one_pass(tmp_path):
    files = data("mnist_train"), data("mnist_test")
    printed = run("digits_one_pass", tmp_path, "--data", *files, "--limit", "4000")
    before, now = numbers("test error: N % after 1,000 images, N % at the end", printed)
    assert now < before < 11 and now < 6


@pytest.mark.slow
def test_optimum_tracked(tmp_path):
    printed = run("optimum_tracked", tmp_path)
    distance, gap, certificate = numbers("mean distance N <= mean gap N <= certificate N", printed)
    assert 0 < distance < gap < certificate < 0.04
    text = " ".join((ROOT / "examples/walkthroughs/optimum_tracked.py").read_text().split("\n# "))
    said = numbers("the model was about N above", text) + numbers("estimates as N,", text)
    said += numbers("this mean is surely at most N:", text)
    # Sums are rounded differently on other processors, and steps change with them.
    assert said == pytest.approx([distance, gap, certificate], rel=0.15)
    if "SVC" in printed:
        ours, svc = numbers("after finish N, of scikit-learn's SVC N", printed)
        assert abs(ours - svc) < 0.002


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_walk_through_says_what_one_learns_and_is_in_the_gallery(script):
    cells = script.read_text(encoding="utf-8").split("# %%")
    assert cells[0] == "" and cells[1].startswith(" [markdown]\n# # ")
    assert all(part in cells[1] for part in ("**You learn**", "**You need**", "minute"))
    assert f"test_{script.stem}" in globals(), "it needs a test"
    page = GALLERY.read_text(encoding="utf-8")
    assert f"](plots/{script.stem}.png)" in page
    assert f"examples/walkthroughs/{script.name}" in page
    picture = ROOT / "docs" / "plots" / f"{script.stem}.png"
    assert picture.stat().st_size < 80_000


def test_every_example_says_what_one_learns_and_is_in_the_gallery():
    page = GALLERY.read_text(encoding="utf-8")
    for script in (ROOT / "examples").glob("*.py"):
        assert f"`{script.name}`" in page, script.name
        assert script.read_text(encoding="utf-8").startswith('"""You learn '), script.name
