"""jobs/runs/reads/dead_letters.py: failed runs in groups of an owner, a task and an error."""

import pytest

from jobs.models import Owner, Run
from jobs.runs.reads import dead_letters
from jobs.runs.reads.dead_letters import group_failed
from tests.jobs.pages.test_failures import failed
from tests.jobs.scenes import superuser


def test_a_group_has_its_newest_and_oldest_run(acme: Owner, northwind: Owner) -> None:
    """The largest group is first, and others are counted apart."""
    runs, [other] = failed(acme, 3), failed(northwind)
    found = group_failed(Run.objects.all(), access=superuser(), most=10)
    assert found.is_complete
    assert [(one.owner_id, one.count) for one in found.groups] == [(acme.pk, 3), (northwind.pk, 1)]
    assert (found.groups[0].newest, found.groups[0].oldest) == (runs[-1].id, runs[0].id)
    assert found.groups[1].newest == found.groups[1].oldest == other.id


def test_only_the_newest_failures_are_grouped(acme: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is said that there are more."""
    monkeypatch.setattr(dead_letters, "SCANNED", 2)
    runs = failed(acme, 4)
    found = group_failed(Run.objects.all(), access=superuser(), most=10)
    assert not found.is_complete
    [group] = found.groups
    assert (group.newest, group.oldest) == (runs[3].id, runs[1].id)
    monkeypatch.setattr(dead_letters, "SCANNED", 4)
    assert group_failed(Run.objects.all(), access=superuser(), most=10).is_complete


def test_a_filter_that_nothing_can_match_has_no_groups() -> None:
    """As that of an owner whom the caller does not know: Django refuses to write its SQL."""
    found = group_failed(Run.objects.filter(owner__in=[]), access=superuser(), most=10)
    assert (list(found.groups), found.is_complete) == ([], True)
