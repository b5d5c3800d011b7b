"""compose/prometheus and compose/grafana: rules, dashboards and their documentation."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.pages.metrics.families import BY_NAME, PREFIX, Kind
from tests.docs.pages import PROJECT, read

PROMETHEUS = PROJECT / "compose/prometheus"
DASHBOARDS = sorted((PROJECT / "compose/grafana/dashboards").glob("*.json"))
PAGE = "docs/operate/alerts.md"
METRIC = re.compile(rf"\b{PREFIX}\w+")
SECTION = re.compile(r"^## (\w+)$", re.MULTILINE)

proof = pytest.mark.proof


def rules() -> list[dict[str, Any]]:
    """Return the alerts."""
    [group] = yaml.safe_load((PROMETHEUS / "rules.yml").read_text())["groups"]
    return list(group["rules"])


def exported() -> Iterator[str]:
    """Return the names of all series that the collector can export."""
    for family in BY_NAME.values():
        yield family.full_name
        if family.kind is Kind.HISTOGRAM:
            yield from (f"{family.full_name}_{part}" for part in ("bucket", "count", "sum"))


def panels(path: Path) -> list[dict[str, Any]]:
    """Return the panels of a dashboard."""
    return list(json.loads(path.read_text())["panels"])


@pytest.mark.parametrize("alert", [rule["alert"] for rule in rules()])
def test_an_alert_says_what_is_wrong_and_where_to_read_on(alert: str) -> None:
    """A summary, a description, a severity of the page, and a link to its section."""
    [rule] = [rule for rule in rules() if rule["alert"] == alert]
    said = rule["annotations"]
    assert set(said) == {"summary", "description", "runbook"}
    # That of the verdict's problems is a template, which promtool tests.
    assert rule["labels"]["severity"] in ("critical", "warning") or "level" in rule["expr"]
    assert said["runbook"] == f"{PAGE}#{alert.lower()}"
    assert alert in SECTION.findall(read(PAGE))


@pytest.mark.parametrize("path", [PROMETHEUS / "rules.yml", *DASHBOARDS], ids=lambda p: p.name)
def test_only_exported_metrics_are_asked_for(path: Path) -> None:
    """A name that the collector does not export would be empty for ever."""
    asked = set(METRIC.findall(path.read_text()))
    assert asked
    assert asked <= set(exported())


def test_every_metric_is_shown_on_a_dashboard() -> None:
    """One that is not shown is not worth a series; the version of a web process excepted."""
    shown = set(METRIC.findall("".join(path.read_text() for path in DASHBOARDS)))
    for family in BY_NAME.values():
        names = {family.full_name, f"{family.full_name}_bucket"}
        assert names & shown or family.name == "info", family.name


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_a_panel_has_a_title_a_unit_and_a_place_of_its_own(path: Path) -> None:
    """No two panels overlap."""
    taken: set[tuple[int, int]] = set()
    for panel in panels(path):
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert all(target["expr"] for target in panel["targets"])
        at = panel["gridPos"]
        cells = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_provisioning_and_dashboards_name_the_same_source() -> None:
    """And the provider reads files."""
    folder = PROJECT / "compose/grafana/provisioning"
    [source] = yaml.safe_load((folder / "datasources/prometheus.yml").read_text())["datasources"]
    [provider] = yaml.safe_load((folder / "dashboards/fairshift.yml").read_text())["providers"]
    assert provider["type"] == "file"
    used = {panel["datasource"]["uid"] for path in DASHBOARDS for panel in panels(path)}
    assert used == {source["uid"]}


@proof
@pytest.mark.parametrize(
    "command",
    [
        ["check", "config", "--syntax-only", "prometheus.yml"],
        ["check", "rules", "rules.yml"],
        ["test", "rules", "rules_test.yml"],
    ],
    ids=" ".join,
)
def test_promtool_accepts(command: list[str]) -> None:
    """The configuration, the rules, and a test of each alert."""
    promtool = shutil.which("promtool")
    assert promtool, "install Debian's prometheus"
    found = subprocess.run(
        [promtool, *command], cwd=PROMETHEUS, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_each_alert_has_a_test() -> None:
    """A fault in rules_test.yml in which it fires, alone."""
    cases = yaml.safe_load((PROMETHEUS / "rules_test.yml").read_text())["tests"]
    fired = {
        sample["labels"].split('"')[1]
        for case in cases
        for asked in case["promql_expr_test"]
        for sample in asked.get("exp_samples", ())
    }
    assert fired == {rule["alert"] for rule in rules()}
