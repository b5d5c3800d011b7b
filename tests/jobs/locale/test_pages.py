"""Every text of every page passes gettext: in a language that brackets texts, none is bare."""

import re
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any, Final
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation

from jobs.core.sql import now
from jobs.models import Membership, Owner, SavedView
from jobs.owners.tokens import make_token
from jobs.system.notices.mails import make_subscription
from tests.browser.story import LONG, tell
from tests.jobs.pages.matrix.places import PLACES
from tests.jobs.recurring.scenes import recurring
from tests.jobs.scenes import failed, submitted
from tests.jobs.windows_world import calendar_of, freeze, window

SHOWN: Final = ("title", "aria-label", "placeholder", "alt", "label")
"""Attributes that a reader sees or hears."""
UNREAD: Final = {"script", "style", "pre", "code", "time", "textarea"}
"""Elements with data, or with nothing for a reader."""
DATA: Final = re.compile(
    r"""
    https?://\S+  # addresses
    |\b(?:owner|job|webhookendpoint|apitoken|mailsubscription)\ \d+  # rows of the audit
    |[0-9a-f]{8}-[0-9a-f-]{27} | fs_\w+  # ids
    |(?:[\w-]+\.)+[\w-]+ |[\w-]+@[\w.-]+ |[\w-]+:[\w-]+  # tasks, errors, nodes, labels
    |backfill\ of\ Backup  # the label of its submission
    |target-of-  # what the matrix searches for
    |[A-Z][\w\ ]*\ \([\w.]+\) | \{"device"[^⟦⟧]*\}  # tasks on offer, arguments
    |\b(?:acme|northwind|contoso(?:-[a-z]+)*|root|fleet|jobs|system|notices|prefork|ci|Nightly|Backup
       |nights|noon|week|sum|berlin|site|sw-\d+|VeryLong\w+|\w+Error|no\ answer\ [^⟦⟧]*
       |nightly(?:-inventory)?|Inventory\ of\ all\ switches|audit\ of\ the\ year|moved|b1|ni
       |Firmware\ 4\.2)\b  # names of the scene
    |Europe/Berlin | \b(?:English|Deutsch)\b  # languages in their own words
    |\b(?:add|unpackaged|none|zzz|UTC|Fairshift|DEBUG|INFO|WARNING|ERROR|CRITICAL|p50|p95|p99|ms|s|min|h|d|MB|CSV|NDJSON|API|JSON|Enter|Esc)\b
    """,
    re.VERBOSE,
)
"""What is the same in every language: data, names and units."""
LETTERS: Final = re.compile(r"[^\W\d_]{2,}")


class Texts(HTMLParser):
    """The texts of a page that a reader sees or hears."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside: list[str] = []
        self._pieces: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.found += [given[name] or "" for name in SHOWN if name in given and tag != "time"]
        if tag == "input" and given.get("type") == "submit":
            self.found.append(given.get("value") or "")
        if tag in UNREAD:
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in UNREAD:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        # A text in brackets may have elements in it: they are cut from the whole.
        self.found.append(data if not self._inside else "")


def bare(html: str) -> list[str]:
    """Return the texts of a page outside all brackets that are no data."""
    texts = Texts()
    texts.feed(html)
    depth, found = 0, []
    for text in texts.found:
        outside = []
        for sign in text:
            depth += (sign == "⟦") - (sign == "⟧")
            outside.append(sign if depth == 0 and sign != "⟧" else " ")
        left = DATA.sub(" ", "".join(outside))
        if LETTERS.search(left):
            found.append(text.strip())
    assert depth == 0
    return found


@pytest.fixture
def bracketed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts from gettext are in brackets."""
    plain, plural = translation.gettext, translation.ngettext

    def wrapped(text: str) -> str:
        return f"⟦{text}⟧" if text.strip() else text

    plain("")  # Django keeps its functions here from the first call on.
    plural("", "", 1)
    of_django: Any = translation
    monkeypatch.setattr(of_django._trans, "gettext", wrapped)
    monkeypatch.setattr(
        of_django._trans, "ngettext", lambda one, many, n: wrapped(one if n == 1 else many)
    )


@pytest.fixture
def keys(acme: Owner, root: User) -> dict[str, Any]:
    """A world with something on every page, and the keys in its addresses."""
    ended = failed(acme, LONG, "no answer within 5 s", labels={"site": "berlin"}, target="sw-1")
    told = tell(acme)
    worker: UUID = told["worker"]
    job = recurring(acme, "nightly", name="Backup", schedule="cron", cron="30 2 * * *")
    calendar = calendar_of(acme, "week", needs_approval=True)
    asked = window(calendar, opens_in=3_600, seconds=600)
    freeze(calendar)
    mails = {"name": "ci", "events": ["run.ended"], "addresses": ["ops@acme.example"]}
    named = {"name": "noon", "query": "owner=acme"}
    view = SavedView.objects.create(user=User.objects.get(username="root"), **named)
    [waiting, *_rest] = submitted(acme, 2, label="moved")
    return {
        "run_id": ended.pk,
        "open": waiting.pk,
        "submission_id": waiting.submission_id,
        "job_id": job.pk,
        "backfill_id": job.backfill(now() - timedelta(days=3), now()).pk,
        "calendar_id": calendar.pk,
        "window_id": asked.pk,
        "worker_id": worker,
        "webhook_id": told["webhook"],
        "subscription_id": make_subscription(mails, owner=acme).pk,
        "prefix": make_token("ci", scopes=["read"], owner=acme).token.prefix,
        "view_id": view.pk,
        "member_id": Membership.objects.create(owner=acme, user=view.user).pk,
        "slug": acme.slug,
    }


OTHERS: Final = (
    "/login/",
    "/?owner=acme",
    "/runs/?state=problem&age=1d",
    "/runs/?label=none:none",
    "/runs/actions/cancel/?owner=acme",
    "/runs/actions/retry/?owner=acme",
    "/runs/actions/move/?state=failed",
    "/runs/{run_id}/log/?after=0.0",
    "/runs/{open}/",
    "/runs/{open}/cancel/",
    "/submissions/?search=none",
    "/jobs/?search=none",
    "/calendars/?search=none",
    "/failures/?task=none",
    "/search/?q=ni",
    "/search/?q=zzz",
    "/audit/?actor=zzz",
    "/owners/northwind/",
    "/owners/northwind/resume/",
)
"""Other rows and filters of the pages, which are themselves those of the isolation matrix."""


@pytest.mark.proof  # it reads every page of a large world
def test_no_text_of_a_page_is_outside_gettext(
    as_root: Client, keys: dict[str, Any], bracketed: None
) -> None:
    """Data, names and units stay as they are; nothing else does."""
    found: dict[str, list[str]] = {}
    others = [path.format(**keys) for path in OTHERS]
    for path in [*(place.address(keys) for place in PLACES), *others]:
        # Phrases are rendered for readers of other languages only.
        answer = as_root.get(path, headers={"Accept-Language": "de"})
        if answer.status_code not in {200, 302}:
            found[path] = [str(answer.status_code)]
            continue
        for text in bare(answer.content.decode()):
            found.setdefault(text, []).append(path)
    assert found == {}, "\n".join(f"{text!r}: {paths[:3]}" for text, paths in found.items())
