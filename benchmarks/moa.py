"""MOA's learners on a stream of events, by MOA's own command.

MOA is written in Java: Java 17 must be there, and Maven brings its jars once into
``~/.cache/streamsvm-moa``. Events are written to a file that MOA reads; it predicts each event
before it learns it, and writes what it predicted.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from river import preprocessing

from benchmarks.common import Event, numeric

LEARNERS = {
    "MOA ARF": "meta.AdaptiveRandomForest -s 30",
    "MOA SRP": "meta.StreamingRandomPatches -s 30",
    "MOA SGBT": "meta.StreamingGradientBoostedTrees",
    "MOA SAM-kNN": "lazy.SAMkNN",
}
_COMPARES_ROWS = ("MOA SAM-kNN",)
"""Strings are one-hot features for it, and a scaler is in front, as for River's neighbours."""

MOST_FEATURES = 1000
"""Ensembles of dense rows of more features, as of text, take gigabytes and seconds an event."""

_POM = Path(__file__).with_name("moa_pom.xml")
_JARS = Path.home() / ".cache/streamsvm-moa"


class FailedError(Exception):
    """MOA failed on a stream."""


def check() -> None:
    """Bring MOA's jars if they are not there; end the program if that cannot be."""
    if not all(map(shutil.which, ("java", "mvn"))):
        raise SystemExit("--moa: MOA needs Java 17 or newer, and Maven, on the PATH")
    if not list(_JARS.glob("moa-*.jar")):
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={_JARS}"]
        if subprocess.run(["mvn", "-q", "-B", "-f", _POM, *goal], check=False).returncode:
            raise SystemExit("--moa: Maven could not bring MOA's jars (see above)")


def predicted(name: str, events: list[Event], seconds: float) -> tuple[list[Any], float] | None:
    """Return what a learner predicted for each event, and the seconds of the processor it took.

    None: there are too many features, or it would take more than `seconds`.
    """
    if name in _COMPARES_ROWS:
        scaler, scaled = preprocessing.StandardScaler(), []
        for x, y in events:
            row = numeric(x)
            scaler.learn_one(row)
            scaled.append((scaler.transform_one(row), y))
        events = scaled
    names = list(dict.fromkeys(key for x, _ in events for key in x))
    if len(names) > MOST_FEATURES:
        return None
    labels = list(dict.fromkeys(y for _, y in events))
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "events.arff"), Path(folder, "predicted")
        _write(file, events, names, labels)
        task = (
            f"EvaluatePrequential -l ({LEARNERS[name]}) -s (ArffFileStream -f {file}) "
            f"-e BasicClassificationPerformanceEvaluator -f {len(events)} -o {out}"
        )
        command = ["java", "-cp", f"{_JARS}/*", "moa.DoTask", task]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return None
        if not out.exists() or len(found := out.read_text().splitlines()) < len(events):
            # MOA ends with 0 after an exception, too.
            raise FailedError(f"{name} failed: {done.stderr.strip()[-300:]}")
        heads, *_, last = (line.split(",") for line in done.stdout.splitlines() if "," in line)
        spent = float(last[heads.index("evaluation time (cpu seconds)")])
    return [labels[int(line.split(",")[0])] for line in found], spent


def _write(file: Path, events: list[Event], names: list[Any], labels: list[Any]) -> None:
    """Write events as ARFF; absent features are missing values, strings are categories."""
    values: dict[Any, dict[str, int]] = {}
    for x, _ in events:
        for name, value in x.items():
            if isinstance(value, str):
                known = values.setdefault(name, {})
                known.setdefault(value, len(known))
    with file.open("w") as out:
        out.write("@relation events\n")
        for j, name in enumerate(names):
            # Numbers in place of texts, which would have to be quoted.
            kind = (
                f"{{{','.join(map(str, values[name].values()))}}}" if name in values else "numeric"
            )
            out.write(f"@attribute f{j} {kind}\n")
        out.write(f"@attribute label {{{','.join(map(str, range(len(labels))))}}}\n@data\n")
        place = {label: i for i, label in enumerate(labels)}
        for x, y in events:
            row = [
                "?" if (value := x.get(name)) is None
                else str(values[name][value]) if name in values
                else repr(float(value))
                for name in names
            ]  # fmt: skip
            out.write(",".join([*row, str(place[y])]) + "\n")
