"""jobs/pages/calendars/window.py: decisions by those who may, on what they have seen."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from jobs.models import AuditEntry, Owner, Window, WindowDecision
from tests.jobs.admin.calendars.test_page import nightly
from tests.jobs.admin.conftest import said
from tests.jobs.pages.test_calendars import SEES, Person, text
from tests.jobs.windows_world import calendar_of


def decided(client: Client, window: Window, verb: str, **fields: Any) -> Any:
    """Open the page that asks, and send its form as a browser would."""
    url = reverse("jobs:window_verb", args=[window.pk, verb])
    seen = client.get(url).context["form"]["seen"].value()
    return client.post(url, {"seen": seen, **fields}, follow=True)


def test_a_window_is_approved_revoked_and_rejected(
    as_root: Client, acme: Owner, person: Person
) -> None:
    """By those who may; the reason is in the decision and the audit."""
    calendar = calendar_of(acme, needs_approval=True)
    asked = nightly(calendar)
    viewer = person("vera", *SEES, "approve_window", acme="operator")
    url = reverse("jobs:window_verb", args=[asked.pk, "approve"])
    assert viewer.get(url).status_code == viewer.post(url, {}).status_code == 403
    assert url not in text(viewer, "window", asked.pk)
    assert url not in text(viewer, "calendar", calendar.pk)
    ann = person("ann", *SEES, "approve_window", acme="approver")
    assert url in text(ann, "window", asked.pk) and url in text(ann, "calendar", calendar.pk)
    sent = {"until_0": "2098-01-01", "until_1": "00:00", "reason": "agreed"}
    assert said(decided(ann, asked, "approve", **sent)) == ["The decision is stored."]
    made = WindowDecision.objects.get()
    assert (made.decision, made.reason) == ("approved", "agreed")
    assert made.expires_at == datetime(2098, 1, 1, tzinfo=UTC)
    refused = ann.get(reverse("jobs:window_verb", args=[asked.pk, "reject"]), follow=True)
    assert said(refused) == ["This is decided already, or needs no approval."]
    assert said(decided(ann, asked, "revoke")) == ["The decision is stored."]
    shown = text(ann, "window", asked.pk)
    assert "revoked" in shown and "agreed" in shown and "ann" in shown
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert [action for action in actions if "window" in action][-2:] == [
        "approve window",
        "revoke window",
    ]
    other = nightly(calendar)
    decided(ann, other, "reject")
    assert WindowDecision.objects.get(window=other).decision == "rejected"


def test_one_occurrence_is_approved(as_root: Client, acme: Owner) -> None:
    asked = nightly(calendar_of(acme, needs_approval=True))
    url = reverse("jobs:window_verb", args=[asked.pk, "approve"])
    choices = as_root.get(url).context["form"].fields["occurrence"].choices
    chosen = choices[2][0]
    assert said(decided(as_root, asked, "approve", occurrence=chosen)) == [
        "The decision is stored."
    ]
    assert WindowDecision.objects.get().occurrence_at == datetime.fromisoformat(chosen)
    wrong = as_root.post(url, {"seen": "1 0", "occurrence": "2020-01-01T00:00:00+00:00"})
    assert wrong.status_code == 200 and "Select a valid choice" in wrong.content.decode()


def test_four_eyes_and_a_change_in_between_are_refused(
    as_root: Client, root: User, acme: Owner
) -> None:
    """Who asked does not approve; and what has changed since it was shown is not approved."""
    calendar = calendar_of(acme, needs_approval=True)
    own = nightly(calendar, actor=root)
    [refusal] = said(decided(as_root, own, "approve"))
    assert "four eyes" in refusal
    asked = nightly(calendar)
    url = reverse("jobs:window_verb", args=[asked.pk, "approve"])
    seen = as_root.get(url).context["form"]["seen"].value()
    Window.objects.filter(pk=asked.pk).update(revision=2)
    [late] = said(as_root.post(url, {"seen": seen}, follow=True))
    assert "changed since" in late
    assert not WindowDecision.objects.exists()
