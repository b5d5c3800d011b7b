"""Calendars of others do not exist; shared ones are seen where they apply, and only there."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs.calendars import changes
from jobs.models import Attachment, Calendar, Owner, Run, Target, TargetGroup, Window
from tests.jobs.admin.calendars.test_page import nightly, page
from tests.jobs.scenes import submitted
from tests.jobs.windows_world import calendar_of

VIEW = ("view_calendar", "view_window", "view_targetgroup", "view_target", "view_owner")
EDIT = tuple(f"{verb}_{of}" for of in ("calendar", "window", "targetgroup") for verb in
             ("add", "change", "delete"))  # fmt: skip

Person = Callable[..., Client]


@pytest.fixture
def foreign(stranger: Owner) -> dict[str, Any]:
    """What the stranger has, by the name of its page."""
    calendar = calendar_of(stranger, "stranger's nights", needs_approval=True)
    target = Target.objects.create(owner=stranger, name="stranger-sw")
    group = TargetGroup.objects.create(owner=stranger, name="stranger's switches")
    group.targets.add(target)
    window = nightly(calendar, reason="stranger's reason")
    return {"calendar": calendar, "window": window, "targetgroup": group, "target": target}


@pytest.fixture
def shared(acme: Owner, stranger: Owner) -> Calendar:
    """A calendar of nobody, that applies to acme and to the stranger."""
    made = Calendar.objects.create(name="the operator's freezes")
    for owner in (acme, stranger):
        changes.attach(made, owner)
    nightly(made, effect="freeze", reason="year's end")
    return made


def test_months_and_actions_of_a_foreign_row_are_as_unknown_as_none(
    person: Person, acme: Owner, foreign: dict[str, Any]
) -> None:
    """Lists and pages of rows are in `owners/test_access`."""
    client = person("ann", *VIEW, *EDIT, "approve_window", acme="admin")
    calendar, window = foreign["calendar"], foreign["window"]
    months = [
        reverse("jobs:month_of", args=[kind, key])
        for kind, key in (
            ("owner", 2**70),
            ("owner", calendar.owner_id),
            ("target", foreign["target"].pk),
            ("door", calendar.pk),
        )
    ]
    assert {client.get(month).status_code for month in months} == {404}
    for action in ("approve", "delete"):
        url = reverse("admin:jobs_window_actions", args=[window.pk, action])
        assert client.post(url).status_code == 404


def test_nothing_is_made_for_or_attached_to_what_is_anothers(
    person: Person, acme: Owner, foreign: dict[str, Any]
) -> None:
    """The refusal does not name what the key belongs to."""
    client = person("ann", *VIEW, *EDIT, acme="admin")
    for name in ("calendar", "window", "targetgroup"):
        assert "stranger" not in page(client, f"{name}_add")
    options = {"name": "x", "cut_off_seconds": 0, "spread_seconds": 0, "end": "let run"}
    for sent in (
        {"owner": foreign["calendar"].owner_id, "targets": [foreign["target"].pk]},
        {"owner": ""},
        {"owner": acme.pk, "targets": [foreign["target"].pk]},
        {"owner": acme.pk, "groups": [foreign["targetgroup"].pk]},
        {"owner": acme.pk, "owners": [foreign["calendar"].owner_id]},
    ):
        answer = client.post(reverse("admin:jobs_calendar_add"), options | sent)
        assert answer.status_code == 200 and "stranger" not in answer.content.decode()
    sent = {"owner": acme.pk, "name": "x", "names": "stranger-sw"}
    answer = client.post(reverse("admin:jobs_targetgroup_add"), sent)
    assert "no targets of these names: stranger-sw" in answer.content.decode()
    sent = {"owner": acme.pk, "name": "x", "targets": [foreign["target"].pk]}
    answer = client.post(reverse("admin:jobs_targetgroup_add"), sent)
    assert "stranger-sw" not in answer.content.decode()
    url = reverse("admin:jobs_window_add", query={"calendar": foreign["calendar"].pk})
    assert "stranger" not in client.get(url).content.decode()
    assert Calendar.objects.count() == TargetGroup.objects.count() == 1


def test_a_shared_calendar_is_read_only_and_tells_nothing_of_others(
    person: Person, acme: Owner, shared: Calendar, stranger: Owner
) -> None:
    """Its windows, its month and its page are seen, without the others to whom it applies."""
    submitted(stranger, count=3)
    Run.objects.update(state="held", next_at="2026-12-05T12:00Z")
    client = person("ann", *VIEW, *EDIT, "approve_window", acme="admin")
    text = page(client, "calendar_changelist")
    assert "operator" in text and "stranger" not in text
    text = page(client, "calendar_change", shared.pk)
    assert "acme" in text and "stranger" not in text and "_save" not in text
    window = Window.objects.get(calendar=shared)
    text = page(client, "window_change", window.pk)
    assert "_save" not in text and "actions/" not in text
    month = reverse("jobs:calendar", args=[shared.pk], query={"month": "2026-12"})
    text = client.get(month).content.decode()
    assert "planned" not in text and "freeze" in text
    assert client.post(reverse("admin:jobs_window_delete", args=[window.pk])).status_code == 403
    assert client.post(reverse("admin:jobs_calendar_change", args=[shared.pk])).status_code == 403
    Attachment.objects.filter(owner=acme).delete()
    assert "operator" not in page(client, "calendar_changelist")
