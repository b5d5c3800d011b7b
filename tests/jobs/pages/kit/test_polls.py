"""jobs/pages/kit/polls.py: a poll without a change is answered 304 without reading a row."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import translation

from jobs.core import sql
from jobs.models import Membership, Owner
from jobs.pages.kit import polls
from jobs.pages.kit.polls import PART
from tests.jobs.scenes import submitted

pytestmark = pytest.mark.usefixtures("committed", "broker")

OVERVIEW = reverse("jobs:overview")
OWNERS_READ = ("view_run", "view_owner")
ROWS = re.compile(r'FROM "?jobs_(?!membership)')


@pytest.fixture(autouse=True)
def _visitors_leave(committed: None) -> Iterator[None]:
    """What they leave would stay for the tests after this one."""
    yield
    User.objects.all().delete()
    Session.objects.all().delete()
    translation.deactivate()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands: what changes by time is late by up to STAMP_SECONDS."""
    now = [1_000_000.0]
    monkeypatch.setattr(polls.time, "time", lambda: now[0])
    return now


def poll(client: Client, etag: str = "", path: str = OVERVIEW, **headers: str) -> HttpResponse:
    """Ask for the live part, once this session has reported what it has changed."""
    sql.query("SELECT pg_stat_force_next_flush()")
    had = {"If-None-Match": etag} if etag else {}
    answer: Any = client.get(path, headers={PART: "1", **had, **headers})
    return answer


def has_read(ask: Callable[[], HttpResponse]) -> tuple[int, bool]:
    """Return the status of an answer, and whether rows of ours were read for it."""
    with CaptureQueriesContext(connection) as asked:
        answer = ask()
    return answer.status_code, any(ROWS.search(query["sql"]) for query in asked.captured_queries)


def test_without_a_change_nothing_is_read(as_root: Client, acme: Owner) -> None:
    """Poll after poll; the statements are those of the login, and one that asks for changes."""
    etag = poll(as_root)["ETag"]
    for _ in range(3):
        assert has_read(lambda etag=etag: poll(as_root, etag)) == (304, False)  # type: ignore[misc]
        etag = poll(as_root, etag)["ETag"]


def test_a_change_is_shown_by_the_next_poll(as_root: Client, acme: Owner) -> None:
    """The part is another one, and comes with the answer 200."""
    etag = poll(as_root)["ETag"]
    Owner.objects.update(weight=7)
    changed = poll(as_root, etag)
    assert changed.status_code == 200 and changed["ETag"][:33] != etag[:33]


def test_what_changes_by_time_is_read_again(
    as_root: Client, acme: Owner, clock: list[float]
) -> None:
    """No stamp is good for longer than STAMP_SECONDS."""
    etag = poll(as_root)["ETag"]
    clock[0] += polls.STAMP_SECONDS
    assert has_read(lambda: poll(as_root, etag)) == (304, True)


def test_the_etag_of_another_visitor_does_not_serve(
    as_root: Client, acme: Owner, stranger: Owner, person: Callable[..., Client]
) -> None:
    """Nor that of another page, language or filter."""
    member = person("mia", *OWNERS_READ, acme="viewer")
    other = person("zoe", *OWNERS_READ, acme="viewer")
    etag = poll(member)["ETag"]
    assert has_read(lambda: poll(member, etag)) == (304, False)
    for ask in (
        lambda: poll(other, etag),
        lambda: poll(as_root, etag),
        lambda: poll(member, etag, f"{OVERVIEW}?owner=acme"),
        lambda: poll(member, etag, **{"Accept-Language": "de"}),
    ):
        _status, is_read = has_read(ask)
        assert is_read


def test_an_etag_opens_nothing(acme: Owner, person: Callable[..., Client]) -> None:
    """A visitor who has lost the permission, or the owner, is answered as without an ETag."""
    member = person("mia", *OWNERS_READ, acme="viewer")
    path = reverse("jobs:owner", args=["acme"])
    etag, lists = poll(member, path=path)["ETag"], poll(member)["ETag"]
    Membership.objects.all().delete()
    assert poll(member, etag, path).status_code == 404
    assert has_read(lambda: poll(member, lists))[1]
    sql.query("DELETE FROM auth_user_user_permissions")
    assert poll(member, etag, path).status_code == 403
    assert Client().get(path, headers={PART: "1", "If-None-Match": etag}).status_code == 302


def test_an_etag_tells_nothing_of_other_owners(
    acme: Owner, stranger: Owner, person: Callable[..., Client]
) -> None:
    """Each answer has a new one, whether anything has happened or not; the hash is the body's."""
    member = person("mia", *OWNERS_READ, acme="viewer")
    path = reverse("jobs:owner", args=["acme"])
    first = poll(member, path=path)["ETag"]
    second = poll(member, first, path)["ETag"]
    submitted(stranger)
    third = poll(member, second, path)["ETag"]
    assert len({first, second, third}) == 3
    assert len({etag[:33] for etag in (first, second, third)}) == 1


def test_a_forged_or_weakened_etag_is_harmless(as_root: Client, acme: Owner) -> None:
    """A proxy that compresses makes ETags weak: they serve. A wrong seal does not."""
    etag = poll(as_root)["ETag"]
    assert has_read(lambda: poll(as_root, f"W/{etag}")) == (304, False)
    forged = f'{etag[:51]}{"0" * 32}"'
    assert has_read(lambda: poll(as_root, forged))[1]
    assert poll(as_root, '"guessed"').status_code == 200
