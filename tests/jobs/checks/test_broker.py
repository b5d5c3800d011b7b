"""jobs/checks/broker.py: a Redis that drops messages or is another's is refused."""

from collections.abc import Iterator

import pytest
from celery import current_app
from django.core.checks import CheckMessage
from redis import Redis

from fleet import installation_key
from jobs.checks import broker
from jobs.checks.broker_versions import REDIS_FLOORS, VALKEY_FLOORS, Version, oldest_patched


@pytest.fixture
def client() -> Iterator[Redis]:
    with current_app.connection_for_write() as connection:
        client = connection.default_channel.client
        client.delete(installation_key())
        yield client
        client.config_set("maxmemory-policy", "noeviction")
        client.delete(installation_key())


def checked() -> list[CheckMessage]:
    """Return what is said of this Redis, apart from its age: the embedded one is old."""
    return [found for found in broker.check_broker() if found.id != "fairshift.W205"]


@pytest.mark.django_db
def test_a_version_with_published_faults_is_a_warning(client: Redis) -> None:
    """The embedded Redis is one; the hint names the oldest patched release of its line."""
    version = client.info("server")["redis_version"]
    if version.startswith("6.2.") and version < "6.2.24":
        [found] = [found for found in broker.check_broker() if found.id == "fairshift.W205"]
        assert f"Redis {version} has published security faults: a client " in found.msg
        assert found.hint is not None and "Use Redis 6.2.24 or newer" in found.hint
    else:
        pytest.skip(f"Redis {version} is not the embedded one")


@pytest.mark.django_db
def test_embedded_redis_passes_twice(client: Redis) -> None:
    """The first look makes the Redis ours, the next ones find that it is."""
    assert checked() == []
    assert checked() == []


@pytest.mark.django_db
def test_foreign_installation_is_an_error(client: Redis) -> None:
    """Two installations on one Redis database would take each other's messages."""
    client.set(installation_key(), "1/other")
    (message,) = checked()
    assert message.id == "fairshift.E204"
    assert "1/other" in message.msg


@pytest.mark.django_db
def test_evicting_redis_is_an_error(client: Redis) -> None:
    """A full Redis must refuse, not forget."""
    client.config_set("maxmemory-policy", "allkeys-lru")
    (message,) = checked()
    assert message.id == "fairshift.E203"


@pytest.mark.django_db
def test_old_redis_is_an_error(client: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older than the oldest supported version."""
    monkeypatch.setattr(broker, "OLDEST_VERSION", (99, 0))
    (message,) = checked()
    assert message.id == "fairshift.E202"


def test_missing_redis_is_an_error_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer gets a sentence and a fix."""
    monkeypatch.setattr(current_app.conf, "broker_write_url", "redis://127.0.0.1:1/0")
    (message,) = checked()
    assert message.id == "fairshift.E201"
    assert message.hint is not None and "correct CELERY_BROKER_URL" in message.hint


@pytest.mark.parametrize(
    ("floors", "version", "patched"),
    [
        (REDIS_FLOORS, "6.2.14", "6.2.24"),
        (REDIS_FLOORS, "6.2.24", None),
        (REDIS_FLOORS, "6.2.100", None),
        (REDIS_FLOORS, "7.0.15", "7.2.16"),  # a line without fixes: the next one that has them
        (REDIS_FLOORS, "7.4.10", "7.4.11"),
        (REDIS_FLOORS, "8.0.6", "8.2.9"),
        (REDIS_FLOORS, "8.8.1", "8.8.2"),
        (REDIS_FLOORS, "8.10.1", None),
        (REDIS_FLOORS, "9.0.0", None),  # newer than the table
        (REDIS_FLOORS, "8.2", None),
        (REDIS_FLOORS, "unstable", None),
        (VALKEY_FLOORS, "7.2.13", "7.2.14"),
        (VALKEY_FLOORS, "8.1.9", None),
        (VALKEY_FLOORS, "9.0.4", "9.0.5"),
        (VALKEY_FLOORS, "9.1.1", None),
    ],
)
def test_each_release_line_has_the_oldest_release_with_all_fixes(
    floors: tuple[Version, ...], version: str, patched: str | None
) -> None:
    """That of its own line, or of the next one that gets fixes; Valkey has lines of its own."""
    assert oldest_patched(version, floors) == patched
