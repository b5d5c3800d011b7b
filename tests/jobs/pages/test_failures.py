"""jobs/pages/failures: failed runs by error and task, and the retry of a group."""

from html import escape

from django.test import Client
from django.urls import reverse

from jobs.models import Owner, Run
from jobs.runs.reads.dead_letters import by_error, group_failed
from tests.jobs import scenes
from tests.jobs.scenes import superuser

PAGE = reverse("jobs:failures")
RETRY = reverse("jobs:run_actions", args=["retry"])
GROUP = "state=failed&error=builtins.OSError&task=tests.add"


def failed(owner: Owner, count: int = 1, *, error: str = "builtins.OSError") -> list[Run]:
    """Return runs of an owner that failed with an error."""
    return [scenes.failed(owner, error, "no <b>route</b>") for _ in range(count)]


def test_runs_are_grouped_by_error_and_task_whoever_owns_them(
    acme: Owner, northwind: Owner
) -> None:
    """The largest group first, with its owners and its first run."""
    first, *_ = failed(acme, 2)
    failed(northwind)
    failed(acme, error="builtins.KeyError")
    groups = by_error(group_failed(Run.objects.all(), access=superuser(), most=10).groups)
    assert [(one.error, one.count) for one in groups] == [
        ("builtins.OSError", 3),
        ("builtins.KeyError", 1),
    ]
    assert groups[0].owner_ids == {acme.pk, northwind.pk}
    assert groups[0].oldest == first.id and groups[0].newest.owner_id == northwind.pk


def test_the_page_shows_groups_and_its_filter_narrows_them(as_root: Client, acme: Owner) -> None:
    """What a task wrote is escaped."""
    failed(acme, 2)
    failed(acme, error="builtins.KeyError")
    page = as_root.get(PAGE).content.decode()
    assert "OSError" in page and "KeyError" in page
    assert "no &lt;b&gt;route" in page and "<b>route" not in page
    assert escape(f"{RETRY}?{GROUP}") in page
    page = as_root.get(PAGE, {"error": "builtins.KeyError"}).content.decode()
    assert "OSError" not in page and "KeyError" in page
    assert "OSError" in as_root.get(PAGE, {"error": "", "task": "tests.add"}).content.decode()
    wrong = as_root.get(PAGE, {"task": "x" * 300}).content.decode()
    assert "No failed run matches" in wrong and "at most 255" in wrong
