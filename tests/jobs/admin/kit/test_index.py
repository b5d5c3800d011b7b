"""jobs/admin/kit/index.py: one section of ours on the index, below the project's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from jobs.admin.kit.index import come_last
from jobs.models import Owner
from jobs.pages.kit import nav

INDEX = reverse("admin:index")


def sections(client: Client) -> list[tuple[str, list[str]]]:
    """Return the sections of the index, first to last, with the names of their entries."""
    return [
        (str(app["name"]), [str(model["name"]) for model in app["models"]])
        for app in client.get(INDEX).context["app_list"]
    ]


def test_our_section_is_below_those_of_the_project(as_root: Client) -> None:
    """Those of the apps that we need are below it, under their own names."""
    names = [name for name, _entries in sections(as_root)]
    assert names[-3:] == ["Fairshift", "Celery Results", "Periodic Tasks"]
    assert "Authentication and Authorization" in names[:-3]


def test_each_of_our_things_is_listed_once(as_root: Client) -> None:
    """Whatever its name: no other section has it, and the sidebar has the same entries."""
    entries = Counter(name.lower() for _section, each in sections(as_root) for name in each)
    ours = dict(sections(as_root))["Fairshift"]
    assert {name: entries[name.lower()] for name in ours} == dict.fromkeys(ours, 1)
    models = {model for model in admin.site._registry if model._meta.app_label == "jobs"}
    assert len(ours) == 1 + len(models)
    page = as_root.get(reverse("admin:jobs_run_changelist")).content.decode()
    index = as_root.get(INDEX).content.decode()
    for model in models:
        address = reverse(f"admin:jobs_{model._meta.model_name}_changelist")
        assert index.count(f'<a href="{address}">') == 1
        assert page.count(f'<a href="{address}"') >= 1


def test_the_first_entry_is_the_overview(as_root: Client) -> None:
    """Not marked as the page on which one is."""
    overview = f"http://testserver{reverse('jobs:overview')}"
    assert dict(sections(as_root))["Fairshift"][0] == "Overview"
    assert as_root.get(INDEX).content.decode().count(f'<a href="{overview}">Overview</a>') == 1


def test_a_person_sees_what_it_may_see(person: Callable[..., Client], acme: Owner) -> None:
    found = sections(person("mia", "view_job", acme="viewer"))
    assert found == [("Fairshift", ["Overview", "Jobs"])]


def test_the_page_of_an_app_is_djangos(as_root: Client) -> None:
    """It has all models of the app, as the links above a row's page promise."""
    [app] = as_root.get(reverse("admin:app_list", args=["jobs"])).context["app_list"]
    assert app["name"] == "Fairshift"
    models = [model for model in admin.site._registry if model._meta.app_label == "jobs"]
    assert len(app["models"]) == len(models)


def test_without_our_addresses_there_is_no_overview(
    as_root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nav, "address", lambda *_name: None)
    assert "Overview" not in dict(sections(as_root))["Fairshift"]


def test_ordering_twice_changes_nothing(as_root: Client) -> None:
    before = sections(as_root)
    come_last(admin.site)
    assert sections(as_root) == before


def test_an_owner_has_a_button_to_its_page(as_root: Client, acme: Owner) -> None:
    """And its page has a link back."""
    change = reverse("admin:jobs_owner_change", args=[acme.pk])
    page = reverse("jobs:owner", args=["acme"])
    assert f'href="{page}"' in as_root.get(change).content.decode()
    assert f'href="{change}"' in as_root.get(page).content.decode()
