"""jobs/pages/kit/lists.py: filters and pages of lists."""

from typing import Annotated
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from pydantic import Field

from jobs.actions import Shown
from jobs.actions.filters.declared import Filter
from jobs.models import Owner
from jobs.pages.kit import lists
from jobs.pages.kit.errors import PageError
from jobs.pages.kit.lists import FilterForm, newest_first
from tests.jobs.pages.kit.test_visit import visit_of


class Hours(Filter):
    hours: Annotated[int | None, Shown("Age in hours"), Field(le=10)] = None


def form_of(user: User, query: str = "") -> FilterForm:
    return FilterForm(visit_of(user, query), Hours)


def test_pages_have_each_row_once_and_keep_the_filter(
    db: None, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that is made meanwhile moves no row to another page."""
    monkeypatch.setattr(lists, "LIMIT", 2)
    made = [Owner.objects.create(slug=f"o{number}") for number in range(5)]
    query, seen, pages = "state=failed", [], 0
    while query:
        found = newest_first(visit_of(root, query), Owner.objects.all(), of="owners")
        assert (found.first is None) == (pages == 0)
        seen += found.rows
        pages += 1
        Owner.objects.create(slug=f"late{pages}")
        query = urlsplit(found.next or "").query
        assert not query or "state=failed" in query
    assert seen == made[::-1] and pages == 3


@pytest.mark.parametrize("query", ["cursor=x", "state=queued&cursor={}", "cursor={}"])
def test_a_cursor_of_another_list_is_refused(
    db: None, root: User, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another filter, too; the error names the parameter."""
    monkeypatch.setattr(lists, "LIMIT", 1)
    for number in range(2):
        Owner.objects.create(slug=f"o{number}")
    found = newest_first(visit_of(root, "state=failed"), Owner.objects.all(), of="owners")
    cursor = (found.next or "").partition("cursor=")[2]
    with pytest.raises(PageError, match=r"^cursor: ") as refused:
        newest_first(visit_of(root, query.format(cursor)), Owner.objects.all(), of="owners")
    assert refused.value.status == 400


def test_a_wrong_filter_is_named_at_its_field(db: None, root: User) -> None:
    """All fields may be left out."""
    form = form_of(root)
    assert form.is_valid() and not form.is_set
    for query in ("hours=many", "hours=11"):
        wrong = form_of(root, query)
        assert not wrong.is_valid() and list(wrong.errors) == ["hours"] and wrong.is_set
