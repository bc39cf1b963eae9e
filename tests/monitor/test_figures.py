"""All that shows figures names those of the registry, and pages explain each of them."""

import ast
import json
import re
from pathlib import Path

import numpy as np

from connectors import MemorySource
from streamsvm import BadEvents, LASVMClassifier, Run, TrackingMonitor
from streamsvm.cli.report import report_rows
from streamsvm.monitor.figures import ALL, BYTES, CHARTS, FIGURES, LINES, RATE, SECONDS, SHARE
from streamsvm.page.sections import Sections

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "examples" / "grafana.json"
ALERTS = DASHBOARD.with_name("kafka") / "alerts.yml"
SERVED = {f"{n}_total" if f.counter else n: f for n, f in ALL.items()}
UNITS = {SHARE: "percentunit", SECONDS: "s", BYTES: "bytes", RATE: "ops"}


def test_every_metric_of_the_dashboard_is_served():
    recall = {
        f"recall_{e}": FIGURES["accuracy"] for e in ("low", "high", "recent_low", "recent_high")
    }
    served = SERVED | recall
    dashboard = json.loads(DASHBOARD.read_text())
    panels = dashboard["panels"]
    found = {}
    for panel in panels:
        for target in panel["targets"]:
            names = re.findall(r"streamsvm_(\w+)", target["expr"])
            assert len(names) == 1, target["expr"]
            found[names[0]] = target["expr"]
            if (figure := ALL.get(names[0])) is not None and figure.chart:
                assert target["legendFormat"] == figure.title
            unit = panel["fieldConfig"]["defaults"].get("unit", "none")
            assert "rate(" in target["expr"] or UNITS.get(served[names[0]].unit, "none") == unit
            # A counter is read as a rate, a gauge as it is.
            assert names[0] == "forgotten_total" or ("rate(" in target["expr"]) == (
                names[0].endswith("_total")
            )
    assert len(found) > 20
    variables = json.dumps(dashboard["templating"])
    assert re.findall(r"streamsvm_(\w+)", variables) == ["n_examples"]
    places = [tuple(panel["gridPos"].values()) for panel in panels]
    assert len(set(places)) == len({panel["id"] for panel in panels}) == len(panels)


def test_every_metric_of_an_alert_is_served():
    rules = re.findall(r"^ +expr: (.*)$", ALERTS.read_text(), re.M)
    names = {name for rule in rules for name in re.findall(r"streamsvm_(\w+)", rule)}
    assert len(rules) == ALERTS.read_text().count("- alert:") >= 6
    assert names <= SERVED.keys(), names - SERVED.keys()


def test_pages_name_every_figure_and_no_other():
    text = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    words = set(re.findall(r"`(\w+)`", text))
    ends = tuple(word for word in words if word.startswith("_"))
    assert not [n for n in FIGURES if n not in words and not n.endswith(ends)]
    metrics = set(re.findall(r"`streamsvm_(\w+)", text))
    assert {name for name in metrics if not name.startswith("recall_")} <= SERVED.keys()
    page = (ROOT / "docs" / "monitor.md").read_text()
    table = page[page.index("| figure | meaning |") : page.index("Screen, report, plots")]
    named = {
        n for row in re.findall(r"^\| (`.*?) \|", table, re.M) for n in re.findall(r"`(\w+)`", row)
    }
    assert len(named) > 30 and named <= FIGURES.keys()


def test_the_table_of_the_report_names_its_rows():
    texts = {
        node.value
        for name in ("report", "gap_rows", "candidates")
        for node in ast.walk(ast.parse((ROOT / "streamsvm" / "cli" / f"{name}.py").read_text()))
        if isinstance(node, ast.Constant)
    }
    texts |= {figure.title for figure in ALL.values()}
    page = (ROOT / "docs" / "first_steps.md").read_text()
    table = page[page.index("| line | meaning |") : page.index("On another processor")]
    named = re.findall(r"^\| ([a-z, A-Z]+?) \|", table, re.M)[1:]
    for name in named:
        assert name in texts or {*name.split(", ")} <= texts, name


def test_reports_and_pages_call_a_figure_by_one_name():
    rng = np.random.default_rng(0)
    events = [({"a": float(a)}, bool(a > 0)) for a in rng.normal(size=900)]
    monitor = TrackingMonitor(LASVMClassifier(), every=100)
    source = MemorySource([*events, ({"a": [1.0]}, True)])
    run = Run(source, monitor, bad_events=BadEvents("skip"))
    rows = dict(report_rows(run.execute(), {}))
    page = Sections(monitor, run.figures, None, False).made()["now"]
    for name in ("accuracy", "gap", "averaged_gap", "n_support_vectors", "memory_bytes"):
        assert ALL[name].title in rows and f"<dt>{ALL[name].title}</dt>" in page, name
    assert ALL["bad_events"].title in rows and not any("_" in name for name in rows)


def test_every_line_of_a_chart_has_a_title():
    assert all(f.title and f.chart in CHARTS for f in ALL.values() if f.chart)
    assert all(LINES.values())
