"""jobs/pages/ical_logs.py: the secret of a feed stands in no log line."""

import logging
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from django.test import Client

from jobs.calendars.ical_feed import new_secret
from jobs.management.stack import programs
from jobs.management.stack.stack import Stack, free_port
from jobs.models import Calendar
from jobs.pages import ical_feed
from tests.flows.processes import environment

SECRET = "s3cret-of-a-feed_0123456789"
ADDRESS = f"/calendars/{SECRET}.ics"


@pytest.mark.parametrize("how", ["unknown", "wrong method", "broken"])
def test_django_names_no_secret(
    db: None, how: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Django logs the path of each request that it refuses or that fails."""
    client = Client(raise_request_exception=False)
    if how == "broken":
        monkeypatch.setattr(ical_feed, "calendar_of", None)
    with caplog.at_level(logging.DEBUG):
        answer = client.post(ADDRESS) if how == "wrong method" else client.get(ADDRESS)
    assert answer.status_code == {"unknown": 404, "wrong method": 405, "broken": 500}[how]
    lines = [record.getMessage() for record in caplog.records if record.name == "django.request"]
    assert lines and all("calendars/….ics" in line for line in lines)
    assert SECRET not in caplog.text


@pytest.mark.proof
def test_the_web_server_names_no_secret(committed: None, tmp_path: Path) -> None:
    """With its access log on; the rest of a line stays."""
    secret = new_secret(Calendar.objects.create(name="plant"))
    port = free_port(0)
    given = environment(tmp_path / "tasks.log") | {
        "ALLOWED_HOSTS": "127.0.0.1",
        "GUNICORN_CMD_ARGS": "--access-logfile=-",
    }
    web = programs.web(port=port, processes=1, environment=given)
    with Stack([web], log_folder=tmp_path) as stack:
        stack.wait_ready()
        site = f"http://127.0.0.1:{port}/calendars"
        with urlopen(f"{site}/{secret}.ics?a=b", timeout=200) as answer:
            assert answer.status == 200
        # Refused for its missing CSRF token.
        with pytest.raises(HTTPError, match="403"):
            urlopen(Request(f"{site}/{secret}.ics", method="POST"), timeout=200)
    log = (tmp_path / "web.log").read_text()
    assert '"GET /calendars/….ics?a=b HTTP/1.1" 200' in log
    assert secret not in log
