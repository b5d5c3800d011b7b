"""jobs/pages/submissions/submit.py: foreseen, then submitted once, by who may."""

from collections.abc import Callable
from typing import Any

import pytest
from celery import shared_task
from django.test import Client
from django.urls import reverse

from jobs.models import AuditEntry, Owner, Rollout, Run, Submission, Target, TargetGroup
from tests.jobs.admin.conftest import said
from tests.jobs.scenes import living_worker
from tests.jobs.windows_world import calendar_of, window

pytestmark = pytest.mark.usefixtures("offered")

URL = reverse("jobs:submit")
LIST = reverse("jobs:submissions")
MAY = ("view_submission", "add_submission")


@shared_task(name="tests.reload")
def reload(name: str) -> None:
    """Have a device read its rules again."""


def typed(owner: Owner, /, **fields: Any) -> dict[str, Any]:
    """Return what somebody types: one target that is named, unless another way is."""
    ways = {"names": "fw-1\r\nfw-2 \n\nfw-1"}
    if fields.keys() & {"group", "filter", "labels"}:
        ways = {}
    task = {"task": "tests.reload", "arguments": '{"name": "{target}"}'}
    return {"owner": owner.slug, **task, "once": "n1", **ways, **fields}


def look(client: Client, owner: Owner, **fields: Any) -> Any:
    answer = client.post(URL, typed(owner, **fields))
    assert answer.status_code == 200
    return answer


def confirmed(client: Client, shown: Any, **fields: Any) -> Any:
    """Send the form that a page shows, with its button."""
    data = {name: value for name, value in shown.context["form"].data.items() if value is not None}
    data.pop("look", None)
    return client.post(URL, {**data, "submit": "Submit", **fields}, follow=True)


def facts(answer: Any) -> dict[str, str]:
    return dict(answer.context["facts"])


def names_of(submission: Submission) -> list[str]:
    runs = Run.objects.filter(submission=submission)
    return sorted(runs.values_list("target__name", flat=True))


def test_it_is_foreseen_and_then_submitted_once(as_root: Client, acme: Owner) -> None:
    """Looking stores nothing; a double click finds what the first one made; it is audited.

    The target may stand within a text, as in an address.
    """
    assert URL in as_root.get(LIST).content.decode()
    living_worker()
    arguments = '{"name": "https://{target}.example.com/"}'
    shown = look(as_root, acme, label="ruleset 7", priority=9, arguments=arguments)
    assert facts(shown)["Targets"] == "2"
    assert not Run.objects.exists() and not Target.objects.exists()
    for _ in range(2):
        done = confirmed(as_root, shown)
        submission = Submission.objects.get()
        assert done.redirect_chain[-1][0].endswith(f"/submissions/{submission.pk}/")
        assert said(done) == [f'Submitted: <a href="{done.redirect_chain[-1][0]}">ruleset 7</a>']
    assert names_of(submission) == ["fw-1", "fw-2"]
    run = Run.objects.get(target__name="fw-2")
    assert (run.priority, run.arguments) == (9, ([], {"name": "https://fw-2.example.com/"}))
    [entry] = AuditEntry.objects.filter(action="submit")
    assert (entry.object_id, entry.owner, entry.details["count"]) == (str(submission.pk), acme, 2)


def test_what_was_not_shown_is_not_submitted(as_root: Client, acme: Owner) -> None:
    """Without a look, and after a change since it: shown again instead."""
    blind = as_root.post(URL, {**typed(acme), "submit": "Submit"})
    changed = confirmed(as_root, blind, names="fw-3")
    for answer in (blind, changed):
        assert "changed since its forecast" in said(answer)[0]
    Target.objects.create(owner=acme, name="sw-1")
    shown = look(as_root, acme, filter="sw")
    Target.objects.create(owner=acme, name="sw-2")
    assert "changed since its forecast" in said(confirmed(as_root, shown))[0]
    assert not Submission.objects.exists()


def test_targets_come_from_a_group_or_a_filter(
    as_root: Client, acme: Owner, northwind: Owner
) -> None:
    """Of this owner only; a name and labels must both match."""
    rows = [
        Target(owner=owner, name=name, labels={"site": site})
        for owner in (acme, northwind)
        for name, site in (("fw-1", "berlin"), ("fw-2", "bonn"), ("sw-1", "berlin"))
    ]
    Target.objects.bulk_create(rows)
    group = TargetGroup.objects.create(owner=acme, name="all")
    group.targets.set(rows[:3])
    labels = '{"site": "berlin"}'
    counts = [
        facts(look(as_root, acme, **way))["Targets"]
        for way in ({"group": group.pk}, {"filter": "fw"}, {"labels": labels})
    ]
    assert counts == ["3", "2", "2"]
    confirmed(as_root, look(as_root, acme, filter="fw", labels=labels))
    assert names_of(Submission.objects.get()) == ["fw-1"]


def test_the_forecast_tells_what_the_windows_leave(as_root: Client, acme: Owner) -> None:
    """How many never start and are left over, with the first names; and it warns."""
    living_worker()
    window(calendar_of(acme, needs_approval=True), opens_in=60, seconds=600)
    answer = look(as_root, acme)
    told = facts(answer)
    assert told["Of these, not approved"] == told["Never start"] == "2: fw-1, fw-2"
    assert (told["Without a calendar"], told["Finishes by"]) == ("0", "not within a year")
    assert "Waiting for a window that is not approved: 2." in answer.content.decode()


@pytest.mark.parametrize(
    ("field", "given", "problem"),
    [
        ("arguments", {"arguments": '{"name": '}, "Expecting value"),
        ("arguments", {"arguments": '{"name": "fw-1"}'}, "must contain"),
        ("arguments", {"arguments": '{"name": "fw-1", "{target}": 1}'}, "must contain"),
        ("arguments", {"arguments": '{"name": "{target}", "x": 1}'}, "no such argument"),
        ("arguments", {"arguments": '{"": "{target}"}'}, "no such argument"),
        ("task", {"task": "tests.nothing"}, "Select a valid choice"),
        ("deadline_seconds", {"deadline_seconds": "-1"}, "0.1"),
        ("group", {"names": ""}, "Give exactly one"),
        ("group", {"names": "fw-1", "filter": "fw"}, "Give exactly one"),
        ("names", {"names": "x" * 201}, "200 characters"),
        ("filter", {"filter": "sw"}, "no such targets"),
        ("labels", {"labels": "site"}, "Expecting value"),
        ("owner", {"owner": "nobody"}, "Select a valid choice"),
        ("sizes", {"sizes": "1"}, ""),
        ("stop_at", {"sizes": "100%", "stop_at": "x"}, ""),
        ("approval", {"sizes": "100%", "between_seconds": "9", "approval": "on"}, ""),
        ("stop_at", {"stop_at": "5%"}, ""),
        ("approval", {"approval": "on"}, ""),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    as_root: Client, acme: Owner, field: str, given: dict[str, Any], problem: str
) -> None:
    """And there is no button that submits. Also what is only for waves."""
    answer = as_root.post(URL, {**typed(acme, **given), "submit": "Submit"})
    assert problem in str(answer.context["form"].errors[field])
    assert 'name="submit"' not in answer.content.decode()
    assert not Submission.objects.exists() and not Target.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "names", "problem"),
    [
        (f'{{"name": "{{target}}{"x" * 200_000}"}}', 1_000, "more than 64 MB together"),
        # Few bytes for the first target, and many for the last.
        (f'{{"name": "{"{target}" * 20_000}"}}', 20, "bytes, the limit is 262,144"),
    ],
)
def test_arguments_of_all_runs_fit_into_memory(
    as_root: Client, acme: Owner, arguments: str, names: int, problem: str
) -> None:
    """A form of a megabyte could make gigabytes of arguments, which the web process holds."""
    targets = "\n".join(f"{number}".rjust(number % 100 + 1, "t") for number in range(names))
    shown = look(as_root, acme, arguments=arguments, names=targets)
    assert problem in str(shown.context["form"].errors)


def test_a_filter_that_finds_too_much_is_refused(
    as_root: Client, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the limit."""
    Target.objects.bulk_create(Target(owner=acme, name=f"fw-{n}") for n in range(3))
    monkeypatch.setattr("jobs.pages.submissions.submit_form.BATCH_LIMIT", 2)
    assert "More than 2 targets" in str(look(as_root, acme, filter="fw").context["form"].errors)


def test_a_required_window_is_refused_at_its_field(as_root: Client, acme: Owner) -> None:
    """Foreseen in words, and refused by the submit; nothing is stored."""
    shown = look(as_root, acme, window="on")
    assert any("A window is required" in text for text in shown.context["forecast"].warnings)
    answer = confirmed(as_root, shown)
    assert "no calendar applies" in str(answer.context["form"].errors["window"])
    assert not Submission.objects.exists()


def test_only_who_operates_an_owner_submits_for_it(
    person: Callable[..., Client], acme: Owner, northwind: Owner, stranger: Owner
) -> None:
    """By permission and role; a stranger's owners and groups are not there."""
    group = TargetGroup.objects.create(owner=stranger, name="theirs")
    living_worker()
    viewer = person("vera", *MAY, acme="viewer")
    nobody = person("noah", "view_submission", acme="operator")
    for client in (viewer, nobody):
        assert client.get(URL).status_code == 403
        assert client.post(URL, typed(acme)).status_code == 403
        assert URL not in client.get(LIST).content.decode()
    olga = person("olga", *MAY, acme="operator", northwind="viewer")
    assert "stranger" not in olga.get(URL).content.decode()
    for owner in (stranger, northwind):
        errors = look(olga, owner).context["form"].errors
        assert "Select a valid choice" in str(errors["owner"])
    assert "Select a valid choice" in str(look(olga, acme, group=group.pk).context["form"].errors)
    confirmed(olga, look(olga, acme))
    assert Submission.objects.get().owner == acme


def test_waves_are_shown_with_their_counts(as_root: Client, acme: Owner) -> None:
    """What the sizes mean for these targets; who submits them does not approve a wave."""
    living_worker()
    names = "\n".join(f"fw-{number}" for number in range(20))
    given = {"names": names, "sizes": "1, 10%, 100%", "stop_at": "5%", "approval": "on"}
    shown = look(as_root, acme, **given)
    assert facts(shown)["Waves"] == "1, 2, 17"
    confirmed(as_root, shown)
    rollout = Rollout.objects.get()
    assert (rollout.stop_at, rollout.needs_approval) == ("5%", True)
    assert str(rollout.requested_by) == "root"
    assert Run.objects.filter(state="held").count() == 19
