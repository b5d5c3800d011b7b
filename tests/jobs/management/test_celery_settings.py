"""`manage.py fleet settings`: whose each setting of Celery is, and what it does here."""

import json

import pytest
from celery import current_app

from tests.jobs.management.conftest import Printed


def settings_of(printed: Printed, *arguments: str) -> dict[str, dict[str, str]]:
    """Return what the command prints, by name."""
    rows = json.loads(printed("fleet settings --json", *arguments))["settings"]
    return {row["name"]: row for row in rows}


@pytest.mark.parametrize(
    ("name", "set_by"),
    [
        ("task_acks_late", "Fairshift"),
        ("task_queues", "Fairshift"),
        ("broker_url", "project"),
        ("task_time_limit", "Celery"),
    ],
)
def test_each_setting_has_who_set_it(printed: Printed, name: str, set_by: str) -> None:
    assert settings_of(printed)[name]["set_by"] == set_by


def test_a_changed_default_is_the_project_s(
    printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where Fairshift has another one."""
    monkeypatch.setitem(current_app.conf, "task_acks_late", False)
    monkeypatch.setitem(current_app.conf, "worker_prefetch_multiplier", 9)
    found = settings_of(printed)
    assert found["worker_prefetch_multiplier"]["value"] == "9"
    assert found["worker_prefetch_multiplier"]["set_by"] == "project"
    assert found["task_acks_late"]["set_by"] == "Celery"


def test_passwords_are_not_shown(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    """In URLs, in options and in settings of their own."""
    hidden = "s3cret"
    for name, value in {
        "broker_url": f"redis://:{hidden}@redis:6379/0",
        "broker_read_url": f"redis://:{hidden}@redis:6379/0",
        "security_key_password": hidden.encode(),
        "redis_password": hidden,
        "broker_transport_options": {
            "sentinel_kwargs": {"password": hidden},
            "password": hidden,
            "fair_queues": [],
        },
        "broker_failover_strategy": f"redis://:{hidden}@redis:6379/0",
    }.items():
        monkeypatch.setitem(current_app.conf, name, value)
    out = printed("fleet settings --all")
    assert "CELERY_BROKER_URL = redis://" in out and hidden not in out


def test_some_can_be_asked_for_by_either_name(printed: Printed) -> None:
    assert settings_of(printed, "CELERY_TASK_QUEUES", "event_queue_ttl").keys() == {
        "task_queues",
        "event_queue_ttl",
    }
    assert len(settings_of(printed, "--all")) > len(settings_of(printed))
