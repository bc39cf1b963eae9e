import json
import re
from pathlib import Path

from streamsvm.monitor.prometheus import GAUGES, OF_RUN
from streamsvm.monitor.report import MEANINGS

DASHBOARD = Path(__file__).resolve().parents[2] / "examples" / "grafana.json"
ALERTS = DASHBOARD.with_name("kafka") / "alerts.yml"
SERVED = set(MEANINGS) | GAUGES | {f"{name}_total" for name in set(OF_RUN) - GAUGES}


def test_every_metric_of_the_dashboard_is_served():
    served = SERVED | {f"recall_{end}" for end in ("low", "high", "recent_low", "recent_high")}
    dashboard = json.loads(DASHBOARD.read_text())
    panels = dashboard["panels"]
    found = {}
    for panel in panels:
        for target in panel["targets"]:
            names = re.findall(r"streamsvm_(\w+)", target["expr"])
            assert len(names) == 1, target["expr"]
            found[names[0]] = target["expr"]
            # A counter is read as a rate, a gauge as it is.
            assert names[0] == "forgotten_total" or ("rate(" in target["expr"]) == (
                names[0].endswith("_total")
            )
    assert set(found) <= served and len(found) > 20
    variables = json.dumps(dashboard["templating"])
    assert re.findall(r"streamsvm_(\w+)", variables) == ["n_examples"]
    places = [tuple(panel["gridPos"].values()) for panel in panels]
    assert len(set(places)) == len({panel["id"] for panel in panels}) == len(panels)


def test_every_metric_of_an_alert_is_served():
    rules = re.findall(r"^ +expr: (.*)$", ALERTS.read_text(), re.M)
    names = {name for rule in rules for name in re.findall(r"streamsvm_(\w+)", rule)}
    assert len(rules) == ALERTS.read_text().count("- alert:") >= 6
    assert names <= SERVED, names - SERVED
