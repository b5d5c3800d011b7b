"""Flower: its own pages behind a login, with a way back to the run."""

import base64
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from fleet.stack import programs
from fleet.stack.stack import Stack, free_port
from jobs import submit
from jobs.models import Owner, Run
from tests.flows.processes import environment
from tests.waiting import wait_for

# One Flower beside the shared workers, for all scenes.
pytestmark = [pytest.mark.proof, pytest.mark.usefixtures("stack")]

SITE = "https://jobs.example.org/"


@pytest.fixture(scope="module")
def flower(db: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Flower that receives the workers' events."""
    port, folder = free_port(0), tmp_path_factory.mktemp("flower")
    given = environment(folder / "tasks.log")
    program = programs.flower(
        port=port, user="ann", password="secret", site_url=SITE, environment=given
    )
    with Stack([program], log_folder=folder) as running:
        running.wait_ready()
        yield f"http://127.0.0.1:{port}"


def test_the_page_of_a_task_leads_to_its_run(flower: str, owner: Owner) -> None:
    """Flower's page is all there, and the link's id is the run's own."""

    def heard_of() -> tuple[Run, str] | None:
        # Flower hears only what happens after it has begun to listen.
        run = submit("tests.add", x=1, y=2, owner=owner)
        page = _page(flower, f"/task/{run.id}", seconds=2)
        return (run, page) if run.task in page else None

    run, page = wait_for(heard_of, seconds=30, what="Flower to hear of a run")
    assert f'href="{SITE}admin/jobs/run/{run.id}/change/"' in page
    assert "Task details" in page


def test_without_a_login_there_is_nothing(flower: str) -> None:
    """Neither pages nor the API, nor what monitoring reads."""
    for path in ("/", "/tasks", "/api/tasks", "/metrics", "/healthcheck"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(flower + path, timeout=10)
        assert refused.value.code == 401


def test_it_only_reads(flower: str) -> None:
    """Its API starts and ends nothing, whoever has the login."""
    for path in ("/api/task/send-task/tests.add", "/api/worker/shutdown/any@host"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            _page_now(flower, path, data=b"{}")
        assert refused.value.code == 403
        assert b"ead only" in refused.value.read()


def _page(flower: str, path: str, *, seconds: float) -> str:
    """Return a page as soon as it is there; empty when it is not in time."""
    deadline = time.monotonic() + seconds
    while not (page := _page_now(flower, path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return page


def _page_now(flower: str, path: str, *, data: bytes | None = None) -> str:
    login = {"Authorization": f"Basic {base64.b64encode(b'ann:secret').decode()}"}
    asked = urllib.request.Request(flower + path, data=data, headers=login)
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return ""
        raise
