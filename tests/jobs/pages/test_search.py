"""jobs/pages/search.py and jobs/runs/reads/everything.py: one box finds everything of one's own."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs.models import Calendar, Owner, Run, Target
from jobs.runs.reads import everything
from tests.jobs.admin.conftest import stored_job

SEARCH = reverse("jobs:search")
Person = Callable[..., Client]


def found(client: Client, term: str, **query: Any) -> dict[str, list[str]]:
    """Return the texts that a term finds, by the title of their group."""
    page = client.get(SEARCH, {"q": term, **query})
    assert page.status_code == 200
    groups = page.context["groups"]
    return {str(one["title"]): [hit.text for hit, _url in one["hits"]] for one in groups}


@pytest.fixture
def world(acme: Owner, stranger: Owner) -> None:
    """Rows of two owners, whose names begin with the same letters."""
    for owner in (acme, stranger):
        for number in range(2):
            stored_job(owner, f"shop-{owner.slug}-{number}", name=f"Shop {number}")
            Target.objects.create(owner=owner, name=f"shop-{owner.slug}-{number}")
            Calendar.objects.create(owner=owner, name=f"shop-{owner.slug}-{number}")


def test_each_kind_is_found_by_its_beginning(as_root: Client, world: None) -> None:
    names = [f"shop-{slug}-{number}" for slug in ("acme", "stranger") for number in (0, 1)]
    expected = {"Jobs": names, "Targets": names, "Calendars": names}
    assert found(as_root, "shop-") == expected
    assert found(as_root, "  shop- ") == expected
    assert found(as_root, "ac")["Owners"] == ["acme"]
    assert found(as_root, "SHOP 1") == {"Jobs": [names[1], names[3]]}


def test_only_kinds_that_one_may_view_are_searched(person: Person, world: None) -> None:
    client = person("mia", "view_run", "view_target", acme="viewer")
    assert set(found(client, "shop-")) == {"Targets"}


def test_one_exact_hit_is_opened_at_once(as_root: Client, acme: Owner, failed_run: Run) -> None:
    """Although other rows begin with it; two exact hits are both shown, the exact ones first."""
    job = stored_job(acme, "night")
    stored_job(acme, "nightly")
    opened = as_root.get(SEARCH, {"q": "night"})
    assert opened.status_code == 302 and str(job.pk) in opened["Location"]
    assert str(failed_run.pk) in as_root.get(SEARCH, {"q": failed_run.pk.hex})["Location"]
    Target.objects.create(owner=acme, name="night")
    assert found(as_root, "night") == {"Jobs": ["night", "nightly"], "Targets": ["night"]}


@pytest.mark.parametrize("term", ["", " ", "a\x00b", "x" * 201, "%", "_", "9" * 30, "\ud83d\ude00"])
def test_nonsense_finds_nothing(as_root: Client, world: None, term: str) -> None:
    """Also the signs that stand for any text in PostgreSQL."""
    term = term.encode("utf-16", "surrogatepass").decode("utf-16")
    assert found(as_root, term) == {}


def test_a_search_that_takes_long_ends(
    as_root: Client, world: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kind has its own time, and says that it was not enough."""
    monkeypatch.setattr(everything, "within", lambda _milliseconds, _ask: None)
    page = as_root.get(SEARCH, {"q": "shop-"})
    assert page.status_code == 200 and "took too long" in page.content.decode()
