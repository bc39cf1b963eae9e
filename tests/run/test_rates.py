"""No rate of a report, an advice or a record is below 0 or above 1, whatever the run."""

import json
import math
import re
from datetime import timedelta

import numpy as np
import pytest
from river import linear_model

from connectors import KafkaSource
from connectors.kafka.messages import Message
from streamsvm import (
    ActiveLearner,
    Compare,
    ConformalSets,
    Selective,
    SVMSGDClassifier,
    TrackingMonitor,
)
from streamsvm.cli.report import report_rows
from streamsvm.run.adapters import unwrapped
from streamsvm.run.advice import advice_of
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run

WRAPPERS = {
    "plain": lambda model: model,
    "monitor": lambda model: TrackingMonitor(model, every=200),
    "active": lambda model: ActiveLearner(model, budget=0.3, seed=1),
    "sets": ConformalSets,
    "selective": lambda model: Selective(model, error=0.1),
    "compare": lambda model: Compare(model, SVMSGDClassifier(loss="log")),
    "river": lambda model: linear_model.LogisticRegression(),
}
LATE = {
    "waiting": {},
    "patience": {"patience": 300, "default": 0},
    "a time": {"patience": timedelta(seconds=300), "default": 0},
    "few": {"most": 100, "default": 0},
}


def messages(n, k, delay, seed):
    """Events of k classes that change, some bad, and labels of most of them, later or earlier."""
    rng = np.random.default_rng(seed)
    rows, at, labels = rng.normal(size=(n, 2)), [], []
    for i, (a, b) in enumerate(rows.tolist()):
        y = int((a > 0) + (k > 2) * (b > 0)) if i < 0.7 * n else int(a < 0)
        odd = {3: {"a": "text"}, 5: {"w": -1.0}, 7: {"b": 1e300}}.get(i % 50, {})
        event = {"a": a, "b": b, "w": float(i % 3)} | odd
        at.append((float(i), "events", i, b"{broken" if i % 70 == 9 else event))
        if rng.random() < 0.8:
            label = {"y": None if i % 90 == 1 else y}
            labels.append((i + delay * rng.random(), "labels", i, label))
    for moment, topic, i, value in sorted(at + labels, key=lambda one: one[:3]):
        payload = value if isinstance(value, bytes) else json.dumps(value).encode()
        yield Message(topic, 0, round(1000 * moment) * n + i, b"%d" % i, payload, moment)


RATES = re.compile(
    "accuracy|recall|coverage|set_(single|empty|whole)|answered(_e|_r|$)|error_most|kappa|cache_hits"
)
OTHERS = re.compile(r"change|n_|\.n$|^\.0\.(late|asked)|set_size")
"""Counts and signs whose names have those of rates."""


def rates_of(found, name=""):
    """Yield the rates of a report's or a record's values, by name."""
    for key, value in found.items() if isinstance(found, dict) else enumerate(found):
        full = f"{name}.{key}"
        if isinstance(value, (dict, list)):
            yield from rates_of(value, full)
        elif isinstance(value, (int, float)) and RATES.search(full) and not OTHERS.search(full):
            yield full, value


CASES = [(a, b) for i, a in enumerate(WRAPPERS) for j, b in enumerate(LATE) if (i + j) % 2]


@pytest.mark.parametrize(("name", "late"), CASES)
def test_no_rate_leaves_0_to_1(name, late):
    n, kinds = 1400, [(2, 600), (3, 600), (2, -600), (2, 4000)]
    k, delay = kinds[(list(WRAPPERS).index(name) + list(LATE).index(late)) % 4]
    k = 2 if name == "river" else k
    model = WRAPPERS[name](SVMSGDClassifier())
    source = KafkaSource(messages(n, k, delay, k), "y", labels="labels", weight="w", batch_size=100)
    bad = BadEvents("skip")
    report = Run(source, model, late=LateLabels(**LATE[late]), bad_events=bad).execute()
    assert report.learnt > 1000 or name == "active"
    histories = [report.history, *([model.history] if name == "monitor" else [])]
    found = [report.as_dict(), *(dict(h[i]) for h in histories for i in range(len(h)))]
    wrong = {n: v for n, v in rates_of(found) if not (-1e-12 <= v <= 1 + 1e-12 or math.isnan(v))}
    assert not wrong
    learner = model.model if name == "monitor" else unwrapped(model)
    advised = advice_of(report, learner) if name != "river" else []
    for text in (*(text for _, text in report_rows(report, {})), *advised):
        for percent in re.findall(r"(-?[\d,.]+) ?%", text):
            assert 0.0 <= float(percent.replace(",", "")) <= 100.0, text
