"""config: what protects the site itself: statement timeout, CSP, throttled logins."""

from datetime import timedelta
from pathlib import Path

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from config.logins import ADDRESS_LIMIT
from tests.commands import python
from tests.flows.processes import environment

LOGIN = reverse("admin:login")
ASK = """
import sys
import {module}
print("config.urls" in sys.modules)
import django
django.setup()
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SHOW statement_timeout")
    print(cursor.fetchone()[0])
"""


@pytest.mark.parametrize(
    ("module", "given", "loaded", "shown"),
    [
        ("config.wsgi", {}, True, "30s"),
        ("config.asgi", {"WEB_STATEMENT_TIMEOUT_SECONDS": "2.5"}, True, "2500ms"),
        ("config.celery", {}, False, "0"),
    ],
)
def test_statements_of_the_web_process_end_in_time(
    db: None, tmp_path: Path, *, module: str, given: dict[str, str], loaded: bool, shown: str
) -> None:
    """A page that asks too much is an error, not a busy database. Others set their own limits.

    A web process has imported its views when it starts; a worker never does.
    """
    environ = {
        **environment(tmp_path / "tasks.log"),
        **given,
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }
    done = python("-c", ASK.format(module=module), environ=environ)
    assert done.stdout.split() == [str(loaded), shown], done.stderr


def test_pages_run_no_script_but_their_own_files(db: None) -> None:
    """Script that was injected into a page stays text; tests/browser shows that pages work."""
    policy = Client().get(LOGIN)["Content-Security-Policy"]
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == "'self'"
    assert directives["frame-ancestors"] == directives["object-src"] == "'none'"
    assert "unsafe" not in policy


def attempt(password: str, *, name: str = "ada", address: str = "192.0.2.1") -> int:
    """Try to log in; return the answer's status, 302 when it worked."""
    form = {"username": name, "password": password}
    return Client().post(LOGIN, form, REMOTE_ADDR=address).status_code


def test_guessing_passwords_is_throttled(db: None) -> None:
    """After ten wrong ones the right one is refused as well, for this name from this address.

    A while later it works again: attempts meanwhile do not prolong it.
    """
    User.objects.create_superuser("ada", password="right")
    User.objects.create_superuser("bob", password="right")
    assert [attempt(f"wrong {number}") for number in range(10)] == [*[200] * 9, 429]
    assert attempt("right") == 429
    assert attempt("right", address="192.0.2.2") == 302
    assert attempt("right", name="bob") == 302
    with override_settings(AXES_COOLOFF_TIME=0):
        assert attempt("right") == 302


def test_guessing_names_is_throttled(db: None) -> None:
    """After 100 wrong passwords for any names, no name may log in from that address."""
    User.objects.create_superuser("ada", password="right")
    # 99 of them as they are stored: each attempt is a request.
    AccessAttempt.objects.bulk_create(
        AccessAttempt(
            username=f"name {number}",
            ip_address="192.0.2.1",
            user_agent="",
            failures_since_start=1,
            attempt_time=timezone.now(),
        )
        for number in range(ADDRESS_LIMIT - 1)
    )
    assert attempt("wrong", name="the last") == 429
    assert attempt("right") == 429
    assert attempt("right", address="192.0.2.2") == 302
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=16))
    assert attempt("right") == 302
