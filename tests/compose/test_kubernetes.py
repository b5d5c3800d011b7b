"""compose/kubernetes: the same programs as compose.yaml, with the same rights and settings."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from config.settings import env
from tests.commands import PROJECT

FOLDER: Final = PROJECT / "compose/kubernetes"
PROGRAMS: Final = ("web", "worker", "system", "notices", "beat")


def objects(kind: str) -> dict[str, Any]:
    """Return all objects of a kind, by name."""
    found: dict[str, Any] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        for one in yaml.load_all(path.read_text(), yaml.CSafeLoader):
            if one["kind"] == kind:
                name = one["metadata"]["name"]
                assert name not in found, f"two of {kind} {name}"
                found[name] = one
    return found


def pods() -> dict[str, Any]:
    """Return the pods' specifications by the program that they run."""
    made = objects("Deployment") | objects("Job")
    return {name: one["spec"]["template"]["spec"] for name, one in made.items()}


def given(name: str) -> dict[str, str]:
    """Return the variables of a program; fails if a source of them is missing."""
    [container] = pods()[name]["containers"]
    variables = {one["name"]: one["value"] for one in container.get("env", ())}
    for source in container["envFrom"]:
        if "configMapRef" in source:
            variables |= objects("ConfigMap")[source["configMapRef"]["name"]]["data"]
        else:
            variables |= objects("Secret")[source["secretRef"]["name"]]["stringData"]
    return variables


@pytest.mark.parametrize("name", [*PROGRAMS, "migrate"])
def test_a_program_is_that_of_compose(name: str, services: dict[str, Any]) -> None:
    """The same command and users of the servers; each variable is read, none is missing."""
    [container] = pods()[name]["containers"]
    assert container["command"] == services[name]["command"]
    variables = given(name)
    assert set(variables) - env._known == set()
    assert {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS"} <= set(variables)
    for url in ("DATABASE_URL", "REDIS_URL"):
        user = re.compile("//([a-z_]+):")
        assert user.findall(variables[url]) == user.findall(services[name]["environment"][url])
    ours = services[name]["environment"].get("FAIRSHIFT_ALIVE_FILE")
    assert variables.get("FAIRSHIFT_ALIVE_FILE") == ours


@pytest.mark.parametrize("name", [*PROGRAMS, "migrate"])
def test_a_pod_has_no_more_rights_than_a_container_of_compose(name: str) -> None:
    """Not root, no capability, a read-only root, no token of the cluster."""
    pod = pods()[name]
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}]


def test_health_checks_are_those_of_compose(services: dict[str, Any]) -> None:
    """The file of the main loop; the site by its addresses, under a name that it accepts."""
    for name in ("worker", "system", "notices", "beat"):
        [container] = pods()[name]["containers"]
        [_, asked] = services[name]["healthcheck"]["test"]
        assert container["livenessProbe"]["exec"]["command"] == ["sh", "-c", asked]
    [site] = pods()["web"]["containers"]
    for probe, path in (("livenessProbe", "/health/live"), ("readinessProbe", "/health/ready")):
        asked = site[probe]["httpGet"]
        assert asked["path"] == path
        [header] = asked["httpHeaders"]
        assert header["value"] in given("web")["ALLOWED_HOSTS"].split(",")


def test_workers_are_scaled_by_metrics_that_there_are() -> None:
    """KEDA asks for metrics of docs/operate/metrics.md, and scales the workers' Deployment."""
    [scaled] = objects("ScaledObject").values()
    spec = scaled["spec"]
    assert spec["scaleTargetRef"]["name"] in objects("Deployment")
    assert spec["minReplicaCount"] <= spec["maxReplicaCount"]
    known = (PROJECT / "docs/operate/metrics.md").read_text()
    for trigger in spec["triggers"]:
        [metric] = re.findall("fairshift_[a-z_]+", trigger["metadata"]["query"])
        assert f"- `{metric}` (queue): " in known


def test_no_value_is_left_to_guess() -> None:
    """What an operator must replace is in angle brackets, and nothing else is."""
    text = "".join(path.read_text() for path in sorted(Path(FOLDER).glob("*.yaml")))
    assert set(re.findall("<([^>\n]+)>", text)) == {
        *("jobs.example.com", "your_tasks", "password", "postgres", "redis", "prometheus"),
        *("registry", "version", "50 random characters", "32 random bytes in base64"),
    }
