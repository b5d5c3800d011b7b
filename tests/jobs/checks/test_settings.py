"""jobs/checks/settings.py: settings that would make a promise false are errors with ids."""

import pytest
from celery import current_app
from django.core.checks import run_checks
from pytest_django import Settings

from jobs.checks.settings import check_flower, check_patience


def test_shipped_settings_pass() -> None:
    """What we ship breaks no promise."""
    assert run_checks(tags=["fairshift"]) == []


@pytest.mark.parametrize(
    ("name", "value", "expected", "hint"),
    [
        ("FAIRSHIFT", {"LEASE_SECOND": 30}, "fairshift.E001", "Did you mean LEASE_SECONDS?"),
        ("FAIRSHIFT", {"LEASE_SECONDS": 15, "HEARTBEAT_SECONDS": 10}, "fairshift.E002", ""),
        ("USE_TZ", False, "fairshift.E009", ""),
    ],
)
def test_unsafe_setting_is_an_error(
    settings: Settings, name: str, value: object, expected: str, hint: str
) -> None:
    """Each finding has the id of its promise; a misspelt key is met with the near miss."""
    setattr(settings, name, value)
    [message] = run_checks(tags=["fairshift"])
    assert message.id == expected and hint in str(message.hint)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("accept_content", ["json", "pickle"], "fairshift.E003"),
        ("accept_content", ["json", "nautobot_json"], "fairshift.W007"),
        ("result_accept_content", ["json", "yaml"], "fairshift.W007"),
        ("task_acks_late", False, "fairshift.E004"),
        ("task_serializer", "pickle", "fairshift.E005"),
    ],
)
def test_unsafe_setting_of_celery_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object, expected: str
) -> None:
    """The one that counts, wherever it was set."""
    monkeypatch.setitem(current_app.conf, name, value)
    [message] = run_checks(tags=["fairshift"])
    assert message.id == expected and f"CELERY_{name.upper()}" in str(message.hint)


@pytest.mark.parametrize(
    ("url", "count"),
    [("http://127.0.0.1:5555", 0), ("https://flower.example", 0), ("http://flower.example", 1)],
)
def test_flower_in_clear_text_is_warned_of(settings: Settings, url: str, count: int) -> None:
    """Plain http is for this machine alone."""
    settings.FLOWER_URL = url
    assert len(check_flower()) == count


@pytest.mark.parametrize(
    ("lease", "waits", "said"),
    [(30.0, 5, []), (7.0, 5, []), (6.9, 5, ["for 5 s"]), (30.0, None, ["without end"])],
)
def test_a_lease_outlives_the_wait_for_redis(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    lease: float,
    waits: float | None,
    said: list[str],
) -> None:
    """Or a worker that waits for one that hangs would lose what it runs."""
    settings.FAIRSHIFT = {"LEASE_SECONDS": lease}
    options = {"lease_seconds": lease, "socket_timeout": waits}
    monkeypatch.setitem(current_app.conf, "broker_transport_options", options)
    found = check_patience()
    assert [message.id for message in found] == ["fairshift.E007"] * len(said)
    assert all(words in message.msg for words, message in zip(said, found, strict=True))
