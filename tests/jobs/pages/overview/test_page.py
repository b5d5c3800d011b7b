"""jobs/pages/overview: the page, from real rows and real queues."""

from django.test import Client
from django.urls import reverse

from fleet import Kind
from jobs.core import sql
from jobs.management.status_lines import as_dict, as_text, status_of
from jobs.models import Leader, Owner
from jobs.pages.metrics.scrape import scraped
from jobs.system.state import system_state
from jobs.system.verdict.operator import Operator
from jobs.system.verdict.reading import read
from tests.jobs.broken import all_have_waited
from tests.jobs.scenes import admitted, living_worker, recorded, silence, submitted
from tests.jobs.system.rollups.late import counted_until
from tests.jobs.system.rollups.minutes import ended, minutes_ago, rolled_up

PAGE = reverse("jobs:overview")


def verdict(client: Client, **query: str) -> list[str]:
    """Return the codes of the problems on the page, the worst first."""
    return [problem.code for problem, _url in client.get(PAGE, query).context["problems"]]


def test_an_installation_that_is_not_started_says_so(as_root: Client, broker: object) -> None:
    """The first look at a new site."""
    Leader.objects.all().delete()
    sql.query("DELETE FROM jobs_cursor")
    assert verdict(as_root) == ["beat", "no_worker"]
    page = as_root.get(PAGE).content.decode()
    assert "Beat is silent" in page and "1 more problem<" in page and "No worker is alive" in page


def test_a_worker_that_dies_is_named_until_it_is_back(alive: None) -> None:
    """For an hour at most."""
    dead = living_worker("w2@here")
    silence(dead, seconds=60)
    assert system_state().lost == ("w2@here",)
    living_worker("w2@here")
    assert system_state().lost == ()
    silence(living_worker("w3@here"), seconds=7_200)
    assert system_state().lost == ()


def test_outcomes_and_failures_come_from_rollups(as_chief: Client, acme: Owner) -> None:
    """The last hour: bars, the tile, the groups with a link to the failures."""
    for count in (3, 3, 2):
        ended(acme, minutes_ago(count))
    facts = {"error_type": "builtins.OSError", "error_message": "x"}
    ended(acme, minutes_ago(2), Kind.FAILED, **facts)
    rolled_up()
    page = as_chief.get(PAGE)
    assert "3 succeeded, 1 failed" in page.content.decode()
    assert page.context["failed"] == 1
    url = f"{reverse('jobs:failures')}?error=builtins.OSError&amp;task=tests.add"
    assert url in page.content.decode()


def test_figures_of_late_statistics_are_unknown(as_chief: Client, acme: Owner) -> None:
    """Not 0, and not those of an hour that ended long ago: on the page, in status and metrics."""
    ended(acme, minutes_ago(3), Kind.FAILED, error_type="OSError")
    rolled_up()
    submitted(acme)
    all_have_waited(seconds=100)
    shown = as_chief.get(PAGE)
    assert shown.context["failed"] == 1
    assert [row["failed"] for row in shown.context["owners"]] == [1]
    assert "fairshift_jain_index" in scraped().decode()
    counted_until(minutes_ago(10))
    shown = as_chief.get(PAGE)
    assert verdict(as_chief) == ["statistics"]
    assert [row["failed"] for row in shown.context["owners"]] == [None]
    assert "Not counted yet." in shown.content.decode()
    status = status_of(read(Operator()))
    found = as_dict(status, most=5)
    assert (found["status"], found["failed_last_hour"]) == ("degraded", None)
    assert [owner["failed_last_hour"] for owner in found["owners"]] == [None]
    assert "failed in the last hour not counted yet" in as_text(status, most=5)
    metrics = scraped().decode()
    assert "fairshift_jain_index" not in metrics
    assert "fairshift_owner_share_received{" not in metrics


def test_a_tile_leads_to_the_runs_that_it_counts(as_root: Client, alive: None, acme: Owner) -> None:
    """Runs that a worker has taken and not yet started may be more than there are slots."""
    worker = living_worker("w9@here")
    started, taken, _waits = submitted(acme, 3)
    recorded(admitted(worker, started), Kind.STARTED)
    admitted(worker, taken)
    page = as_root.get(PAGE)
    counts = page.context["counts"]
    assert (counts["running"], counts["admitted"], counts["queued"]) == (1, 1, 1)
    assert "of 8 slots, 1 more taken" in page.content.decode()
    address = reverse("jobs:runs", query={"state": "running"})
    assert f'href="{address}"' in page.content.decode()
    assert [run.pk for run in as_root.get(address).context["list"].rows] == [started.pk]
