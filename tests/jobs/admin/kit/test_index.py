"""jobs/admin/kit/index.py: one section of ours on the index, below the project's own."""

from collections import Counter
from collections.abc import Callable

from django.contrib import admin
from django.test import Client
from django.urls import reverse

from jobs.models import Owner

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


def test_a_person_sees_what_it_may_see(person: Callable[..., Client], acme: Owner) -> None:
    found = sections(person("mia", "view_job", acme="viewer"))
    assert found == [("Fairshift", ["Overview", "Jobs"])]
