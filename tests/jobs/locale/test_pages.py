"""Every text of every page passes gettext: in a language that brackets texts, none is bare."""

import re
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, resolve
from django.utils import translation

from fleet import Kind
from jobs.core.sql import now
from jobs.models import Membership, Owner, SavedView
from jobs.owners.tokens import make_token
from jobs.system.notices.mails import make_subscription
from jobs.urls import urlpatterns
from tests.browser.story import LONG, tell
from tests.jobs.recurring.scenes import recurring
from tests.jobs.scenes import admitted, living_worker, recorded, submitted
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
NO_PAGES: Final = {"calendar_feed", "logout", "theme", "metrics", "live", "ready"}


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
    monkeypatch.setattr(translation._trans, "gettext", wrapped)
    monkeypatch.setattr(
        translation._trans, "ngettext", lambda one, many, n: wrapped(one if n == 1 else many)
    )


@pytest.fixture
def keys(acme: Owner, root: User) -> dict[str, Any]:
    """A world with something on every page, and the keys in its addresses."""
    [failed] = submitted(acme, max_attempts=1, labels={"site": "berlin"}, target="sw-1")
    admission = admitted(living_worker(), failed)
    recorded(admission, Kind.STARTED)
    recorded(admission, Kind.FAILED, error_type=LONG, error_message="no answer within 5 s")
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
        "run": failed.pk,
        "open": waiting.pk,
        "submission": waiting.submission_id,
        "job": job.pk,
        "backfill": job.backfill(now() - timedelta(days=3), now()).pk,
        "calendar": calendar.pk,
        "window": asked.pk,
        "worker": worker,
        "webhook": told["webhook"],
        "mail": make_subscription(mails, owner=acme).pk,
        "token": make_token("ci", scopes=["read"], owner=acme).token.prefix,
        "view": view.pk,
        "member": Membership.objects.create(owner=acme, user=view.user).pk,
    }


PATHS: Final = (
    "/",
    "/?owner=acme",
    "/login/",
    "/runs/",
    "/runs/?state=problem&age=1d",
    "/runs/?label=none:none",
    "/runs/actions/cancel/?owner=acme",
    "/runs/actions/retry/?owner=acme",
    "/runs/views/",
    "/runs/views/save/?state=open",
    "/runs/views/{view}/rename/",
    "/runs/views/{view}/delete/",
    "/runs/{run}/",
    "/runs/{run}/log/?after=0.0",
    "/runs/{open}/",
    "/runs/{open}/cancel/",
    "/runs/{run}/retry/",
    "/submissions/",
    "/submissions/?search=none",
    "/submissions/submit/",
    "/submissions/{submission}/",
    "/submissions/{submission}/cancel/",
    "/submissions/{submission}/retry/",
    "/jobs/",
    "/jobs/?search=none",
    "/jobs/{job}/",
    "/jobs/{job}/run/",
    "/jobs/{job}/pause/",
    "/jobs/{job}/backfill/",
    "/backfills/{backfill}/cancel/",
    "/calendars/",
    "/calendars/?search=none",
    "/calendars/{calendar}/",
    "/calendars/{calendar}/day/2026-03-05/",
    "/calendars/{calendar}/fit/",
    "/create/calendars/",
    "/calendars/{calendar}/change/",
    "/calendars/{calendar}/publish/",
    "/windows/{window}/",
    "/windows/{window}/approve/",
    "/windows/{window}/reject/",
    "/windows/{window}/delete/",
    "/calendars/{calendar}/delete/",
    "/workers/",
    "/workers/{worker}/",
    "/workers/{worker}/drain/",
    "/workers/{worker}/undrain/",
    "/failures/",
    "/failures/?task=none",
    "/tokens/{token}/revoke/",
    "/mail-subscriptions/{mail}/change/",
    "/mail-subscriptions/{mail}/disable/",
    "/mail-subscriptions/{mail}/delete/",
    "/runs/actions/move/?state=failed",
    "/webhooks/",
    "/create/webhooks/",
    "/create/members/",
    "/members/{member}/change/",
    "/create/mail-subscriptions/",
    "/create/owners/",
    "/create/tokens/",
    "/webhooks/{webhook}/",
    "/webhooks/{webhook}/change/",
    "/webhooks/{webhook}/test/",
    "/webhooks/{webhook}/rotate/",
    "/search/?q=ni",
    "/search/?q=zzz",
    "/audit/",
    "/audit/?actor=zzz",
    "/owners/",
    "/owners/acme/",
    "/owners/northwind/",
    "/owners/acme/change/",
    "/plan/",
    "/owners/acme/pause/",
    "/owners/northwind/resume/",
)


@pytest.mark.proof  # it reads every page of a large world
def test_no_text_of_a_page_is_outside_gettext(
    as_root: Client, keys: dict[str, Any], bracketed: None
) -> None:
    """Data, names and units stay as they are; nothing else does."""
    found: dict[str, list[str]] = {}
    for path in PATHS:
        # Phrases are rendered for readers of other languages only.
        answer = as_root.get(path.format(**keys), headers={"Accept-Language": "de"})
        if answer.status_code not in {200, 302}:
            found[path] = [str(answer.status_code)]
            continue
        for text in bare(answer.content.decode()):
            found.setdefault(text, []).append(path)
    assert found == {}, "\n".join(f"{text!r}: {paths[:3]}" for text, paths in found.items())


def test_every_page_is_visited() -> None:
    """A new page is added to PATHS."""
    keys = dict.fromkeys(("run", "open", "worker"), UUID(int=1))
    others = (
        "submission",
        "job",
        "backfill",
        "calendar",
        "window",
        "view",
        "webhook",
        "token",
        "mail",
        "member",
    )
    keys |= dict.fromkeys(others, 1)
    paths = [urlsplit(path.format(**keys)).path for path in PATHS]
    pages = {each.name for each in urlpatterns if isinstance(each, URLPattern)}
    assert pages - NO_PAGES == {resolve(path).url_name for path in paths}


def test_a_bare_text_is_found() -> None:
    """The test above can fail."""
    assert bare("<p>⟦Runs of ⟦acme⟧⟧ <b>tests.add</b> 12 min</p>") == []
    assert bare("<p>⟦Runs⟧ of acme</p>") == ["⟦Runs⟧ of acme"]
    assert bare('<input placeholder="Search">') == ["Search"]
