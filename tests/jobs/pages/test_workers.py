"""jobs/pages/workers.py: which workers are alive, and the runs that they have."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from jobs.models import Owner, Worker
from jobs.models.access import access_of
from jobs.runs.reads.workers import active_counts
from tests.jobs.scenes import admitted, cut_off, living_worker, silence, submitted

PAGE = reverse("jobs:workers")


@pytest.fixture
def workers(db: None) -> dict[str, Any]:
    """A worker that is alive, one without a queue, one that was lost, one that has stopped."""
    found = {
        "alive": living_worker("alive@here"),
        "idle": living_worker("idle@here", queues=()),
        "lost": living_worker("lost@here"),
        "stopped": living_worker("stopped@here"),
    }
    silence(found["lost"], seconds=3_600)
    worker = Worker.objects.get(pk=found["stopped"])
    worker.stopped_at = worker.started_at
    worker.save()
    return found


def test_workers_are_shown_with_their_state(as_root: Client, workers: dict[str, Any]) -> None:
    """Those that take runs first; the heartbeat has an age only if it is late."""
    page = as_root.get(PAGE)
    rows = page.context["workers"]
    assert [one.state for one in rows] == ["alive", "idle", "lost", "stopped"]
    text = page.content.decode()
    assert "takes no runs" in text and "consumes no queue" in text
    assert "last <time" in text, "an age would change with each poll"
    assert [one.beat_age is None for one in rows] == [True, True, False, True]
    system = page.context["system"]
    assert (system.worker_count, system.slots) == (1, 4)


def test_a_worker_that_redis_does_not_answer_takes_no_runs(
    as_root: Client, workers: dict[str, Any]
) -> None:
    """In the list, on its own page with the last answer."""
    cut_off(workers["alive"])
    page = as_root.get(PAGE, {"state": "idle"})
    assert {one.worker.hostname for one in page.context["workers"]} == {"alive@here", "idle@here"}
    assert "cannot use Redis" in page.content.decode()
    assert page.context["system"].without_redis == ("alive@here",)
    text = as_root.get(reverse("jobs:worker", args=[workers["alive"]])).content.decode()
    assert "cannot use Redis" in text and "Last answer of Redis" in text
    text = as_root.get(reverse("jobs:worker", args=[workers["idle"]])).content.decode()
    assert "Last answer of Redis" not in text


def test_workers_are_found_by_queue_and_state(as_root: Client, workers: dict[str, Any]) -> None:
    """The tiles are of all workers; a wrong filter is named, and finds nothing."""

    def found(**query: str) -> list[str]:
        page = as_root.get(PAGE, query)
        assert page.context["system"].worker_count == 1
        return [one.state for one in page.context["workers"]]

    assert found(queue="jobs") == ["alive", "lost", "stopped"]
    assert found(state="lost") == found(queue="jobs", state="lost") == ["lost"]
    assert found(queue="gpu") == []
    text = as_root.get(PAGE, {"queue": "<gpu>"}).content.decode()
    assert "takes from queue &lt;gpu&gt;." in text
    assert found(state="ill") == []
    assert "Select a valid choice" in as_root.get(PAGE, {"state": "ill"}).content.decode()


def test_one_worker_has_the_runs_of_the_visitors_owners(
    acme: Owner, stranger: Owner, person: Callable[..., Client], settings: Any
) -> None:
    """Runs of others do not count; Flower is linked if the project has one."""
    settings.FLOWER_URL = "http://127.0.0.1:5555/"
    worker = living_worker("w1@here")
    [mine], [other] = submitted(acme), submitted(stranger)
    for run in (mine, other):
        admitted(worker, run)
    mia = person("mia", "view_worker", acme="viewer")
    page = mia.get(reverse("jobs:worker", args=[worker])).content.decode()
    assert str(mine.id) in page and str(other.id) not in page and "stranger" not in page
    assert "1 / 4" in page and "http://127.0.0.1:5555/worker/w1%40here" in page
    assert "1 / 4" in mia.get(PAGE).content.decode()
    # Also without the barrier.
    mine = access_of(User.objects.get(username="mia"))
    assert active_counts(mine, [worker]) == {worker: 1}


def test_only_people_for_the_whole_installation_drain(
    acme: Owner, workers: dict[str, Any], person: Callable[..., Client]
) -> None:
    """All owners share the worker: the admin of one owner may not, with every permission."""
    mia = person("mia", "view_worker", "change_worker", acme="admin")
    drain = reverse("jobs:worker_action", args=[workers["alive"], "drain"])
    assert drain not in mia.get(reverse("jobs:worker", args=[workers["alive"]])).content.decode()
    assert [mia.get(drain).status_code, mia.post(drain).status_code] == [403, 403]
    assert Worker.objects.get(pk=workers["alive"]).draining_since is None
