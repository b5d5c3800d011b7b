"""`manage.py fleet settings`: whose each setting of Celery is, and what it does here."""

import json
from typing import Any

import pytest
from celery import current_app
from django.core.management import call_command


def printed(capsys: Any, *arguments: str) -> dict[str, dict[str, str]]:
    """Return what the command prints, by name."""
    call_command("fleet", "settings", "--json", *arguments)
    rows = json.loads(capsys.readouterr().out)["settings"]
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
def test_each_setting_has_who_set_it(capsys: Any, name: str, set_by: str) -> None:
    assert printed(capsys)[name]["set_by"] == set_by


def test_a_changed_default_is_the_project_s(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where Fairshift has another one."""
    monkeypatch.setitem(current_app.conf, "task_acks_late", False)
    monkeypatch.setitem(current_app.conf, "worker_prefetch_multiplier", 9)
    found = printed(capsys)
    assert found["worker_prefetch_multiplier"]["value"] == "9"
    assert found["worker_prefetch_multiplier"]["set_by"] == "project"
    assert found["task_acks_late"]["set_by"] == "Celery"


def test_passwords_are_not_shown(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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
    call_command("fleet", "settings", "--all")
    out = capsys.readouterr().out
    assert "CELERY_BROKER_URL = redis://" in out and hidden not in out


def test_some_can_be_asked_for_by_either_name(capsys: Any) -> None:
    assert printed(capsys, "CELERY_TASK_QUEUES", "event_queue_ttl").keys() == {
        "task_queues",
        "event_queue_ttl",
    }
    assert len(printed(capsys, "--all")) > len(printed(capsys))
