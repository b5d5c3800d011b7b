"""jobs/admin/kit/index.py: our models are grouped by what people do, machinery comes last."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from jobs.admin.kit.index import GROUPS, group_index
from jobs.models import Owner
from jobs.pages.kit import nav

INDEX = reverse("admin:index")


def names(client: Client) -> list[str]:
    """Return the names of the groups on the index, first to last."""
    return [str(app["name"]) for app in client.get(INDEX).context["app_list"]]


def test_the_overview_is_on_top_and_machinery_last(as_root: Client) -> None:
    found = names(as_root)
    assert found[: 1 + len(GROUPS)] == ["Pages", *(str(name) for name, _models in GROUPS)]
    assert [name.partition(":")[0] for name in found[-2:]] == ["Machinery", "Machinery"]
    assert sum(name.startswith("Machinery") for name in found) == 2 and "More" not in found
    [pages, *_] = as_root.get(INDEX).context["app_list"]
    overview = f"http://testserver{reverse('jobs:overview')}"
    assert pages["models"][0]["admin_url"] == overview
    # Not marked as the page on which one is.
    assert f'<a href="{overview}">Overview</a>' in as_root.get(INDEX).content.decode()


def test_each_of_our_models_is_in_one_group() -> None:
    """A model that is in none would stand below "More"."""
    grouped = [name for _label, models in GROUPS for name in models]
    ours = {model.__name__ for model in admin.site._registry if model._meta.app_label == "jobs"}
    assert sorted(grouped) == sorted(ours)


def test_a_group_without_models_that_one_may_see_is_absent(
    person: Callable[..., Client], acme: Owner
) -> None:
    found = names(person("mia", "view_job", acme="viewer"))
    assert found == ["Pages", "See and act on work"]


def test_the_page_of_an_app_is_djangos(as_root: Client) -> None:
    """It has all models of the app, as the links above a row's page promise."""
    [app] = as_root.get(reverse("admin:app_list", args=["jobs"])).context["app_list"]
    assert app["name"] == apps.get_app_config("jobs").verbose_name
    assert len(app["models"]) == sum(len(models) for _name, models in GROUPS)


def test_without_our_addresses_there_are_no_links(
    as_root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nav, "ENTRIES", ())
    assert "Pages" not in names(as_root)


def test_grouping_twice_changes_nothing(as_root: Client) -> None:
    before = names(as_root)
    group_index(admin.site)
    assert names(as_root) == before


def test_an_owner_has_a_button_to_its_page(as_root: Client, acme: Owner) -> None:
    """And its page has a link back."""
    change = reverse("admin:jobs_owner_change", args=[acme.pk])
    page = reverse("jobs:owner", args=["acme"])
    assert f'href="{page}"' in as_root.get(change).content.decode()
    assert f'href="{change}"' in as_root.get(page).content.decode()
