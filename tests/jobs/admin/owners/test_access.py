"""Another owner's rows do not exist: in no list, count, filter, search, page or action."""

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from jobs.models import AuditEntry, Owner, Run, Submission, TargetGroup
from jobs.owners.limits import pause_owner
from tests.jobs.admin.conftest import stored_job
from tests.jobs.scenes import submitted
from tests.jobs.windows_world import calendar_of, window

LISTS = (
    *("owner", "job", "submission", "run", "target", "auditentry"),
    *("calendar", "window", "targetgroup"),
)
VIEW = tuple(f"view_{name}" for name in LISTS)
EDIT = ("change_owner", "change_job", "add_job", "delete_job")

Person = Callable[..., Client]


@pytest.fixture
def both(acme: Owner, stranger: Owner) -> tuple[Run, Run]:
    """A run of acme and one of the stranger, each with all that hangs on it."""
    runs = []
    for owner in (acme, stranger):
        runs += submitted(owner, target=f"{owner.slug}-sw", label=f"{owner.slug}-label")
        stored_job(owner, f"{owner.slug}-job")
        pause_owner(owner, reason=f"{owner.slug}-reason")
        nights = calendar_of(owner, f"{owner.slug}-nights", needs_approval=True)
        window(nights, opens_in=3_600, seconds=60, reason=f"{owner.slug}-reason")
        TargetGroup.objects.create(owner=owner, name=f"{owner.slug}-switches")
    return runs[0], runs[1]


@pytest.mark.parametrize("name", LISTS)
def test_a_list_shows_and_counts_only_what_is_ones_own(
    person: Person, both: tuple[Run, Run], name: str
) -> None:
    """Neither rows, nor the number of them, nor the choices of filters tell of a stranger."""
    client = person("ann", *VIEW, acme="viewer")
    page = client.get(reverse(f"admin:jobs_{name}_changelist"))
    assert "stranger" not in page.content.decode()
    own = AuditEntry.objects.filter(owner__slug="acme") if name == "auditentry" else [both[0]]
    assert page.context["cl"].result_count == len(own)


@pytest.mark.parametrize("name", [name for name in LISTS if name != "auditentry"])
@pytest.mark.parametrize("at", ["change", "history"])
def test_a_foreign_page_is_as_unknown_as_one_that_is_not_there(
    person: Person, both: tuple[Run, Run], stranger: Owner, name: str, at: str
) -> None:
    """The answer to a foreign key and to no key at all is the same."""
    client = person("ann", *VIEW, *EDIT, acme="admin")
    model = apps.get_model("jobs", name)
    path = {"owner": "pk", "window": "calendar__owner"}.get(name, "owner")
    row = model.objects.get(**{path: stranger.pk})
    foreign = client.get(reverse(f"admin:jobs_{name}_{at}", args=[row.pk]))
    assert foreign.status_code == 302 and foreign.url == reverse("admin:index")


def test_searches_and_filters_by_what_is_anothers_find_nothing(
    person: Person, both: tuple[Run, Run]
) -> None:
    """Of an id, a submission, a target or an owner: rows of one's own owners only."""
    client = person("ann", *VIEW, acme="viewer")
    foreign = both[1]
    named = (foreign.id, foreign.submission_id, "stranger-sw")
    terms: list[dict[str, Any]] = [{"q": str(term)} for term in named]
    for query in (*terms, {"owner": "stranger"}, {"submission": foreign.submission_id}):
        page = client.get(reverse("admin:jobs_run_changelist"), query)
        assert page.context["cl"].result_count == 0, query


def test_autocompletion_offers_ones_own(person: Person, both: tuple[Run, Run]) -> None:
    """Choosing an owner or a target in a form tells nothing of others'."""
    client = person("ann", *VIEW, *EDIT, acme="admin")
    for field in ("owner", "target"):
        query = {"app_label": "jobs", "model_name": "job", "field_name": field, "term": "s"}
        answer = client.get(reverse("admin:autocomplete"), query).json()
        assert "stranger" not in str(answer)


def test_an_autocomplete_of_no_foreign_key_is_refused(as_root: Client) -> None:
    """A reverse relation is refused like a field without a relation, or a field that is none."""
    fields = {"job": ("id", "nothing"), "owner": ("jobs",), "calendar": ("windows",)}
    for model, field in [(model, field) for model, names in fields.items() for field in names]:
        query = {"app_label": "jobs", "model_name": model, "field_name": field}
        assert as_root.get(reverse("admin:autocomplete"), query).status_code == 403, query


def test_a_lookup_that_is_no_filter_is_refused(as_root: Client, both: tuple[Run, Run]) -> None:
    """Addresses cannot ask by columns that scan or tell secrets."""
    for query in ({"payload__contains": "x"}, {"owner__memberships__user__password": "x"}):
        page = as_root.get(reverse("admin:jobs_run_changelist"), query)
        assert page.status_code == 400


def test_an_owners_admin_cannot_take_share_from_others(person: Person, acme: Owner) -> None:
    """Weight, cap and rate are set by who looks after all owners."""
    client = person("ann", *VIEW, *EDIT, acme="admin")
    url = reverse("admin:jobs_owner_change", args=[acme.pk])
    limits = {"weight": "1000", "max_running": "9", "rate_limit_per_minute": "9", "run_days": "9"}
    told = {"name": "Acme Ltd", "zone": "UTC", "wait_objective_percent": 95}
    client.post(url, {**told, **limits})
    acme.refresh_from_db()
    assert (acme.name, acme.weight, acme.max_running) == ("Acme Ltd", 3, None)
    assert acme.rate_limit_per_minute is None and acme.run_days is None


def test_nobody_records_by_hand(as_root: Client, both: tuple[Run, Run]) -> None:
    """Runs, submissions, workers and audit are not added, changed or deleted, by nobody."""
    rows = {"run": both[0], "submission": Submission.objects.first()}
    rows["auditentry"] = AuditEntry.objects.first()
    assert as_root.get(reverse("admin:jobs_worker_add")).status_code == 403
    for name, row in rows.items():
        assert as_root.get(reverse(f"admin:jobs_{name}_add")).status_code == 403
        change = reverse(f"admin:jobs_{name}_change", args=[row.pk])
        assert as_root.post(change, {"state": "succeeded"}).status_code == 403
        delete = reverse(f"admin:jobs_{name}_delete", args=[row.pk])
        assert as_root.post(delete, {"post": "yes"}).status_code == 403


def test_an_inactive_superuser_sees_nothing(as_root: Client, both: tuple[Run, Run]) -> None:
    """A session of an account that was shut ends at once."""
    User.objects.update(is_active=False)
    assert as_root.get(reverse("admin:jobs_run_changelist")).status_code == 302
