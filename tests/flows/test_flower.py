"""Flower: its own pages behind a login, with a way back to the run."""

from collections.abc import Iterator

import pytest
import urllib3

from jobs import submit
from jobs.management.stack import programs
from jobs.management.stack.stack import Stack, free_port
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


def ask(url: str, method: str = "GET", *, login: str | None = None) -> tuple[int, str]:
    """Return the status and the text of an answer."""
    headers = urllib3.make_headers(basic_auth=login)
    body = b"{}" if method == "POST" else None
    answer = urllib3.request(method, url, headers=headers, body=body, timeout=10, retries=False)
    return answer.status, answer.data.decode()


def test_the_page_of_a_task_leads_to_its_run(flower: str, owner: Owner) -> None:
    """Flower's page is all there, and the link's id is the run's own."""
    runs: list[Run] = []

    def heard_of() -> tuple[Run, str] | None:
        # Flower hears only what happens after it has begun to listen.
        runs.append(submit("tests.add", x=1, y=2, owner=owner))
        for run in runs:
            _, page = ask(f"{flower}/task/{run.id}", login="ann:secret")
            if run.task in page:
                return run, page
        return None

    run, page = wait_for(heard_of, seconds=30, every=1, what="Flower to hear of a run")
    assert f'href="{SITE}admin/jobs/run/{run.id}/change/"' in page
    assert "Task details" in page


def test_without_a_login_there_is_nothing(flower: str) -> None:
    """Neither pages nor the API, nor what monitoring reads."""
    for path in ("/", "/tasks", "/api/tasks", "/metrics", "/healthcheck"):
        assert ask(flower + path)[0] == 401, path


def test_it_only_reads(flower: str) -> None:
    """Its API starts and ends nothing, whoever has the login."""
    for path in ("/api/task/send-task/tests.add", "/api/worker/shutdown/any@host"):
        status, text = ask(flower + path, "POST", login="ann:secret")
        assert status == 403 and "ead only" in text, path
