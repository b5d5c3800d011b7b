"""jobs/pages/runs/log: the log on a run's page, its new lines, and the last ones of failures."""

import logging
from collections.abc import Callable

from django.test import Client

from fleet import Kind
from jobs.models import Owner
from jobs.pages.runs.log import AFTER
from tests.jobs.logged import chunk, logging_run, say
from tests.jobs.scenes import recorded, submitted


def test_new_lines_come_by_themselves(as_root: Client, acme: Owner) -> None:
    """The page has the first ones, and each answer says where the next begin, until the end."""
    [run] = submitted(acme)
    at = logging_run(run, "<b>first</b>")
    page = as_root.get(f"/runs/{run.id}/").content.decode()
    assert "&lt;b&gt;first&lt;/b&gt;" in page and 'data-after="1.1"' in page
    say(at, chunk(at, "of later", first=2, level=logging.ERROR))
    answer = as_root.get(f"/runs/{run.id}/log/", {"after": "1.1"})
    text = answer.content.decode()
    assert "of later" in text and "first" not in text and answer[AFTER] == "1.2"
    assert as_root.get(f"/runs/{run.id}/log/", {"after": "1.2"}).content.strip() == b""
    recorded(at, Kind.SUCCEEDED)
    assert as_root.get(f"/runs/{run.id}/log/", {"after": "1.2"})[AFTER] == ""
    assert 'data-after=""' in as_root.get(f"/runs/{run.id}/").content.decode()


def test_lines_are_narrowed_and_sent_as_a_file(as_root: Client, acme: Owner) -> None:
    """The page, its new lines and its files have the same filter; a wrong one is left out."""
    [run] = submitted(acme)
    logging_run(run, "sold", "other")
    page = as_root.get(f"/runs/{run.id}/", {"text": "SOLD", "level": "loud", "attempt": "x"})
    assert "sold" in page.content.decode() and "other" not in page.content.decode()
    sent = as_root.get(f"/runs/{run.id}/log/", {"format": "text", "text": "sold"})
    assert b"".join(sent).decode().endswith("INFO     shop: sold\n")
    assert "sold" in as_root.get(f"/runs/{run.id}/log/").content.decode()


def test_who_does_not_see_arguments_sees_no_lines(
    acme: Owner, person: Callable[..., Client]
) -> None:
    """Neither on the page nor by themselves, nor on the page of failures."""
    [run] = submitted(acme, max_attempts=1)
    at = logging_run(run, "canary")
    recorded(at, Kind.FAILED, error_type="E", error_message="e")
    client = person("mia", "view_run", acme="operator")
    assert "canary" not in client.get(f"/runs/{run.id}/").content.decode()
    assert client.get(f"/runs/{run.id}/log/", {"after": "0.0"}).status_code == 403
    assert "canary" not in client.get("/failures/").content.decode()


def test_failures_have_the_last_lines(as_root: Client, acme: Owner) -> None:
    """Twenty of the newest run of each group."""
    [run] = submitted(acme, max_attempts=1)
    at = logging_run(run, *(f"line-{number}." for number in range(30)))
    recorded(at, Kind.FAILED, error_type="E", error_message="e")
    page = as_root.get("/failures/").content.decode()
    assert "line-29." in page and "line-10." in page and "line-9." not in page
