"""jobs/pages/kit/lists.py: filters and pages of lists."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from django import forms
from django.contrib.auth.models import User

from jobs.models import Owner
from jobs.pages.kit import lists
from jobs.pages.kit.errors import PageError
from jobs.pages.kit.lists import FilterForm, newest_first
from tests.jobs.pages.kit.test_visit import visit_of


class AgeFilter(FilterForm):
    hours = forms.IntegerField(label="Age in hours", max_value=10)


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


@pytest.mark.parametrize("query", ["after=x", "state=queued&after={}", "after={}"])
def test_a_cursor_of_another_list_is_refused(
    db: None, root: User, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another filter, too; the error names the parameter."""
    monkeypatch.setattr(lists, "LIMIT", 1)
    for number in range(2):
        Owner.objects.create(slug=f"o{number}")
    found = newest_first(visit_of(root, "state=failed"), Owner.objects.all(), of="owners")
    cursor = (found.next or "").partition("after=")[2]
    with pytest.raises(PageError, match=r"^after: ") as refused:
        newest_first(visit_of(root, query.format(cursor)), Owner.objects.all(), of="owners")
    assert refused.value.status == 400


def test_a_wrong_filter_is_named_at_its_field(db: None, root: User) -> None:
    """All fields may be left out."""
    assert AgeFilter(visit_of(root)).is_valid() and not AgeFilter(visit_of(root)).is_set
    wrong = AgeFilter(visit_of(root, "hours=many"))
    assert not wrong.is_valid() and list(wrong.errors) == ["hours"] and wrong.is_set
    assert not AgeFilter(visit_of(root, "hours=11")).is_valid()
