"""jobs/pages/runs/saved: filters of runs under names of their user."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from jobs.models import Owner, SavedView
from jobs.pages.runs import saved
from tests.jobs.scenes import submitted

VIEWS = "/runs/views/"
SAVE = f"{VIEWS}save/"
FAILED = "state=failed&age=1d"


def save(client: Client, name: str, query: str = FAILED, **fields: str) -> Any:
    return client.post(f"{SAVE}?{query}", {"name": name, **fields}, follow=True)


def stored() -> list[tuple[str, str]]:
    return list(SavedView.objects.order_by("name", "pk").values_list("name", "query"))


def errors(answer: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = answer.context["form"].errors
    return found


def test_a_filter_is_saved_and_opened_again(as_root: Client, acme: Owner) -> None:
    """Only fields that are set are stored, with the chosen owner; the list marks the open view."""
    [run] = submitted(acme)
    listed = as_root.get("/runs/?owner=acme&state=open&job=&after=&odd=1")
    assert b'save/?owner=acme&amp;state=open"' in listed.content
    answer = save(as_root, " mornings ", "owner=acme&state=open&job=&after=&odd=1&cursor=x")
    assert b"The view is saved." in answer.content
    assert stored() == [("mornings", "owner=acme&state=open")]
    [(view, url, is_current)] = answer.context["saved"]
    assert (view.name, url, is_current) == ("mornings", "/runs/?owner=acme&state=open", True)
    opened = as_root.get(url)
    assert opened.context["list"].rows == [run]
    assert opened.content.count(b'aria-current="true"') == 1
    assert b'aria-current="true"' not in as_root.get("/runs/?state=open").content


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\x00b"])
def test_a_wrong_name_is_refused_at_its_field(as_root: Client, acme: Owner, name: str) -> None:
    """With the limit."""
    answer = save(as_root, name)
    assert list(errors(answer)) == ["name"] and stored() == []
    assert "\x00" in name or b"60 characters" in answer.content


def test_a_user_has_some_views_at_most(
    as_root: Client, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them can still be replaced."""
    monkeypatch.setattr(saved, "MOST", 2)
    for name in ("a", "b", "c"):
        answer = save(as_root, name)
    assert b"You have 2 saved views, the most." in answer.content
    save(as_root, "b", "state=open", replaces="on")
    assert stored() == [("a", "state=failed&age=1d"), ("b", "state=open")]


def test_a_filter_that_is_too_long_is_refused(as_root: Client, acme: Owner) -> None:
    """Such as one of fields full of signs that an address writes as nine characters."""
    signs = "%E2%8C%9B"
    query = "&".join(f"{name}={signs * 200}" for name in ("task", "job", "target"))
    answer = save(as_root, "long", query)
    assert "5,418 characters" in answer.content.decode() and "4,000" in answer.content.decode()
    assert stored() == []


def test_only_a_filter_can_be_saved(as_root: Client, acme: Owner) -> None:
    """A valid one."""
    for query in ("", "state=", "state=odd"):
        assert b"Choose a filter first." in save(as_root, "mine", query).content
        assert b"Save this view" not in as_root.get(f"/runs/?{query}").content
    assert stored() == []


def test_a_view_is_renamed_and_deleted(as_root: Client, acme: Owner) -> None:
    save(as_root, "one")
    save(as_root, "two")
    listed = as_root.get(VIEWS)
    one, two = (view.pk for view, _url, _is_current in listed.context["views"])
    taken = as_root.post(f"{VIEWS}{one}/rename/", {"name": "two"})
    assert errors(taken) == {"name": ["you have a view of this name"]}
    assert b'value="one"' in as_root.get(f"{VIEWS}{one}/rename/").content
    as_root.post(f"{VIEWS}{one}/rename/", {"name": "three"})
    assert [name for name, _query in stored()] == ["three", "two"]
    assert b"two" in as_root.get(f"{VIEWS}{two}/delete/").content
    as_root.post(f"{VIEWS}{two}/delete/")
    assert [name for name, _query in stored()] == ["three"]
    for key in (two, 2**70):
        assert as_root.post(f"{VIEWS}{key}/delete/").status_code == 404


def test_views_of_two_users_may_have_one_name(
    acme: Owner, person: Callable[..., Client], as_root: Client
) -> None:
    """Also behind the barrier; none sees or replaces those of another."""
    mia = person("mia", "view_run", acme="viewer")
    save(as_root, "mine", "state=open")
    save(mia, "mine", "state=failed", replaces="on")
    assert stored() == [("mine", "state=open"), ("mine", "state=failed")]
    [(_view, url, _is_current)] = mia.get("/runs/").context["saved"]
    assert url == "/runs/?state=failed"
    User.objects.filter(username="mia").delete()
    assert stored() == [("mine", "state=open")]


def test_a_view_of_an_owner_that_is_left_shows_nothing(
    acme: Owner, northwind: Owner, person: Callable[..., Client]
) -> None:
    """A view grants nothing."""
    submitted(northwind)
    mia = person("mia", "view_run", acme="viewer")
    SavedView.objects.create(
        user=User.objects.get(username="mia"), name="old", query="owner=northwind"
    )
    [(_view, url, _is_current)] = mia.get("/runs/").context["saved"]
    assert mia.get(url).status_code == 404
