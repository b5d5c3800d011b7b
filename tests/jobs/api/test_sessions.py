"""Users attach calendars by the API, in a session of the admin.

A change needs the CSRF token, Django's permission and the role at the owner of the row.
"""

import pytest

from jobs.models import Attachment, Calendar, Job, Owner, Role, Target, TargetGroup, WindowDecision
from tests.jobs.api.conftest import ROOT, Caller, logged_in, post, problem
from tests.jobs.api.job_scenes import made
from tests.jobs.windows_world import calendar_of, window

MAY_ALL = ("view_window", "approve_window", "view_calendar", "change_calendar", "view_attachment")


def test_a_member_who_may_submit_cannot_decide(acme: Owner) -> None:
    """Even with Django's permission: the role at the owner is needed, too."""
    nights = calendar_of(acme, needs_approval=True)
    path = f"/windows/{window(nights, opens_in=3_600, seconds=60).pk}"
    client = logged_in(*MAY_ALL, "add_submission", acme=Role.OPERATOR)
    for decision in ("approve", "reject", "revoke"):
        refused = problem(post(client, f"{path}/{decision}", {}), 403, "forbidden")
        assert "approve" in refused["detail"]
    assert not WindowDecision.objects.exists()


def kinds_of(caller: Caller, owner: Owner) -> dict[str, dict[str, str]]:
    """Make a job, a target and a group of an owner; return the bodies that name them."""
    made(caller(owner), key=f"job-of-{owner.slug}")
    name = f"of-{owner.slug}"
    Target.objects.create(owner=owner, name=name)
    TargetGroup.objects.create(owner=owner, name=name)
    return {
        "owner": {"owner": owner.slug},
        "job": {"job": Job.objects.get(owner=owner).key},
        "target": {"target": name},
        "group": {"group": name},
    }


def test_an_admin_of_an_owner_attaches_and_detaches(caller: Caller, acme: Owner) -> None:
    """To a job, a target, a group and the owner; repeated, an attachment is made once."""
    bodies = kinds_of(caller, acme)
    nights = Calendar.objects.create(owner=acme, name="nights")
    client = logged_in(*MAY_ALL, checks=True, acme=Role.ADMIN)
    path = f"/calendars/{nights.pk}/attachments"
    assert post(client, path, {}).status_code == 403
    client.get(f"{ROOT}/docs")
    token = {"X-CSRFToken": client.cookies["csrftoken"].value}
    for kind, body in bodies.items():
        first, again = (post(client, path, body, **token) for _ in range(2))
        assert first.status_code == again.status_code == 201, first.content
        assert first.json() == again.json()
        assert first.json()[kind] == body[kind]
    assert Attachment.objects.count() == 4
    for key in Attachment.objects.values_list("pk", flat=True):
        address = f"{ROOT}/calendars/attachments/{key}"
        assert client.delete(address).status_code == 403
        assert client.delete(address, headers=token).status_code == 204
        problem(client.delete(address, headers=token), 404, "not_found")
    assert not Attachment.objects.exists()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.APPROVER])
def test_no_other_role_attaches_or_detaches(acme: Owner, role: Role) -> None:
    nights = calendar_of(acme)
    client = logged_in(*MAY_ALL, acme=role)
    problem(post(client, f"/calendars/{nights.pk}/attachments", {}), 403, "forbidden")
    key = Attachment.objects.get().pk
    problem(client.delete(f"{ROOT}/calendars/attachments/{key}"), 403, "forbidden")
    assert Attachment.objects.filter(pk=key).exists()


@pytest.mark.parametrize("kind", ["owner", "job", "target", "group"])
@pytest.mark.parametrize("is_session", [True, False], ids=["session", "token"])
def test_a_calendar_is_not_attached_to_a_foreign_row(
    caller: Caller, acme: Owner, stranger: Owner, *, is_session: bool, kind: str
) -> None:
    """The answer names the field, and is that for an unknown row, but for the name.

    So it is if the body names the foreign owner, too: that owner is unknown.
    """
    foreign = kinds_of(caller, stranger)[kind]
    nights = Calendar.objects.create(owner=acme, name="nights")
    client = logged_in(*MAY_ALL, acme=Role.ADMIN) if is_session else caller(acme)
    path = f"/calendars/{nights.pk}/attachments"
    for extra in ({}, {"owner": "stranger"}):
        body = {**extra, **foreign}
        unknown = {name: text.replace("stranger", "nobody99") for name, text in body.items()}
        answers = [post(client, path, each) for each in (body, unknown)]
        field = "owner" if "owner" in body else kind
        assert [one.status_code for one in answers] == [422, 422]
        assert answers[0].json()["field"] == answers[1].json()["field"] == field
        told, told_of_none = (one.content.decode() for one in answers)
        assert told.replace("stranger", "nobody99") == told_of_none
    assert not Attachment.objects.exists()
