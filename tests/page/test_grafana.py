import json
import re
from pathlib import Path

from streamsvm.monitor.figures import BYTES, FIGURES, OF_RUN, RATE, SECONDS, SHARE

DASHBOARD = Path(__file__).resolve().parents[2] / "examples" / "grafana.json"
ALERTS = DASHBOARD.with_name("kafka") / "alerts.yml"
SERVED = {f"{n}_total" if f.counter else n: f for n, f in (FIGURES | OF_RUN).items()}
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
