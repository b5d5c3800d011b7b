"""config/settings.py: what an installation may set, and what is refused at boot."""

import json
import os
import stat
from pathlib import Path

import pytest

from tests.commands import Done, python

READ = """
import json, sys
import config.settings as settings
print(json.dumps({name: getattr(settings, name) for name in sys.argv[1:]}, default=str))
"""
SERVERS = {
    "DATABASE_URL": "postgresql://app:sesame@db.example:5433/jobs?sslmode=require",
    "REDIS_URL": "redis://redis.example/0",
    "SECRET_KEY": "k" * 50,
}
KEPT = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def boot(*names: str, folder: Path, **variables: str) -> Done:
    """Load the settings in a process of its own, with these variables alone."""
    environ = KEPT | {"FAIRSHIFT_STATE_DIR": str(folder)} | variables
    return python("-c", READ, *names, environ=environ)


def test_production_starts_nothing_and_is_strict(tmp_path: Path) -> None:
    """With URLs given: no debugging, secure cookies, JSON logs, and nothing embedded is loaded."""
    done = boot("DEBUG", "SESSION_COOKIE_SECURE", "LOG_FORMAT", folder=tmp_path, **SERVERS)
    assert json.loads(done.stdout) == {
        "DEBUG": False,
        "SESSION_COOKIE_SECURE": True,
        "LOG_FORMAT": "json",
    }
    assert list(tmp_path.iterdir()) == []


def test_database_url_becomes_a_connection_with_deadlines(tmp_path: Path) -> None:
    """libpq's own URL form; a dead peer is noticed, and the URL's options win."""
    url = SERVERS["DATABASE_URL"] + "&connect_timeout=2"
    done = boot("DATABASES", folder=tmp_path, **(SERVERS | {"DATABASE_URL": url}))
    database = json.loads(done.stdout)["DATABASES"]["default"]
    assert (database["HOST"], database["PORT"]) == ("db.example", "5433")
    assert (database["NAME"], database["USER"]) == ("jobs", "app")
    options = database["OPTIONS"]
    assert (options["connect_timeout"], options["sslmode"]) == ("2", "require")
    assert {"keepalives_idle", "tcp_user_timeout"} < set(options)


def test_servers_that_fail_over(tmp_path: Path) -> None:
    """PostgreSQL by several hosts, Redis by its Sentinels: drivers find the one that writes."""
    sentinels = "sentinel://:sesame@s1:26379/0;sentinel://:sesame@s2:26379/0"
    given = {
        "DATABASE_URL": "postgresql://app@db1:5433,db2:5434/jobs?target_session_attrs=read-write",
        "REDIS_URL": sentinels,
        "REDIS_MASTER_NAME": "main",
        "REDIS_SENTINEL_PASSWORD": "other",
    }
    names = ("DATABASES", "CELERY_BROKER_URL", "CELERY_BROKER_TRANSPORT_OPTIONS")
    done = json.loads(boot(*names, folder=tmp_path, **(SERVERS | given)).stdout)
    database = done["DATABASES"]["default"]
    assert (database["HOST"], database["PORT"]) == ("db1,db2", "5433,5434")
    assert database["OPTIONS"]["target_session_attrs"] == "read-write"
    assert done["CELERY_BROKER_URL"] == sentinels
    options = done["CELERY_BROKER_TRANSPORT_OPTIONS"]
    assert (options["master_name"], options["sentinel_kwargs"]) == ("main", {"password": "other"})


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"SECRET_KEY": ""}, "SECRET_KEY is required but not set."),
        ({"REDIS_URL": "amqp://h"}, "REDIS_URL is not a URL with one of the schemes redis://"),
        ({"REDIS_URL": "sentinel://h/0"}, "REDIS_MASTER_NAME is required with a sentinel:// URL"),
        ({"REDIS_MASTER_NAME": "main"}, "REDIS_MASTER_NAME needs a sentinel:// URL in REDIS_URL."),
        (
            {"REDIS_SENTINEL_PASSWORD": "sesame"},
            "REDIS_SENTINEL_PASSWORD needs a sentinel:// URL in REDIS_URL.",
        ),
        ({"DATABASE_URL": "sqlite:///x"}, "DATABASE_URL is not a URL with one of the schemes"),
        ({"DATABASE_URL": "postgresql://app:sesame@h"}, "DATABASE_URL names no database"),
        (
            {"DATABASE_URL": "postgresql://app:sesame@h/x?sslmod=no"},
            "DATABASE_URL is not a valid PostgreSQL URL",
        ),
        ({"DATABASE_URL": "postgresql://app:sesame@h:x/y"}, "DATABASE_URL is not a valid URL"),
        ({"DEBUG": "maybe"}, "DEBUG is 'maybe', but must be one of"),
        ({"LOG_LEVEL": "verbose"}, "LOG_LEVEL is 'verbose', but must be one of DEBUG, INFO"),
        ({"TIME_ZONE": "Mars/Base"}, "TIME_ZONE is 'Mars/Base', but must be an IANA time zone"),
        ({"FAIRSHIFT_MAX_ATTEMPTS": "0"}, "FAIRSHIFT_MAX_ATTEMPTS is '0', but must be a whole"),
        ({"FAIRSHIFT_LEASE": "5"}, "FAIRSHIFT_LEASE is not a known variable. Did you mean"),
    ],
)
def test_bad_variable_stops_the_boot(
    tmp_path: Path, variables: dict[str, str], message: str
) -> None:
    """Every process refuses a bad setting by name at its start; no password is printed."""
    done = boot(folder=tmp_path, **(SERVERS | variables))
    assert done.returncode == 1
    last_line = done.stderr.strip().splitlines()[-1]
    assert last_line.startswith(f"django.core.exceptions.ImproperlyConfigured: {message}")
    assert "sesame" not in done.stderr


def test_secret_key_of_a_first_start_is_kept(tmp_path: Path) -> None:
    """While debugging, the key is made once, stays the same, and only its owner may read it."""
    variables = SERVERS | {"DEBUG": "1", "SECRET_KEY": ""}
    first, second = (
        json.loads(boot("SECRET_KEY", folder=tmp_path, **variables).stdout) for _ in range(2)
    )
    assert first == second
    assert len(first["SECRET_KEY"]) >= 50
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
