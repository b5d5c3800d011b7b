"""PostgreSQL fails: each request is answered soon, and nothing is stored by halves.

`tests/chaos/test_web.py` has the scenes in which Redis or a web process fails.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.flows.breaking import DROP, Break, hung, killed
from tests.flows.installation import Installation, installed
from tests.flows.web import Answer, Site, site, token_of
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

MOST_SECONDS = 20.0
"""Ten times what is promised: the machine may be slow."""
RUNS = "SELECT count(*) FROM jobs_run"
ADD = {"task": "tests.add", "arguments": {"x": 1, "y": 2}}
REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/runs", None),
    ("GET", "/owners/acme", None),
    ("POST", "/runs", ADD),
    ("POST", "/submissions", {**ADD, "arguments": [{"x": 1, "y": 2}] * 100}),
)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Servers of these scenes' own, and no worker."""
    with installed(tmp_path_factory.mktemp("web"), runs=False) as installation:
        yield installation


@pytest.fixture(scope="module")
def here(quiet: Installation) -> Iterator[Site]:
    """Two web processes on these servers."""
    with site(quiet, token_of(quiet)) as running:
        yield running


def ask_all(here: Site) -> list[Answer]:
    """Send every request twice, four at a time."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda one: here.send(*one), REQUESTS * 2))


@pytest.mark.parametrize("breaking", [hung("postgres"), killed("postgres")], ids=["hung", "killed"])
def test_a_server_that_is_away_is_said_soon(
    quiet: Installation, here: Site, breaking: Break
) -> None:
    """503 with Retry-After, nothing is stored; afterwards the same requests are answered."""
    assert {answer.status for answer in ask_all(here)} == {200, 202}
    before = quiet.count(RUNS)
    with breaking(quiet):
        # The second time on no connection at all.
        answers = ask_all(here) + ask_all(here)
    assert {answer.status for answer in answers} == {503}
    assert {answer.body["code"] for answer in answers} == {"database_away"}
    assert all(int(answer.headers["Retry-After"]) >= 1 for answer in answers)
    assert max(answer.seconds for answer in answers) < MOST_SECONDS
    assert quiet.count(RUNS) == before
    wait_for(lambda: here.send("GET", "/runs").status == 200, seconds=10)
    assert {answer.status for answer in ask_all(here)} == {200, 202}


def test_an_ended_backend_costs_no_request_more_than_a_repeat(
    quiet: Installation, here: Site
) -> None:
    """PostgreSQL ends every connection under load: each answer is a success or 503, and soon."""
    before = quiet.count(RUNS)
    with ThreadPoolExecutor(4) as pool:
        each = [pool.submit(here.send, "POST", "/runs", ADD) for _ in range(200)]
        while not each[-1].done():
            quiet.servers.sql(DROP)
        answers = [one.result() for one in each]
    stored = quiet.count(RUNS) - before
    assert {answer.status for answer in answers} <= {202, 503}
    assert max(answer.seconds for answer in answers) < MOST_SECONDS
    # An answer of 503 leaves open whether the commit was done.
    made = {answer.body["id"] for answer in answers if answer.status == 202}
    assert len(made) <= stored <= len(answers)
    assert {answer.status for answer in ask_all(here)} == {200, 202}


def test_a_slow_statement_of_a_living_server_is_waited_for(quiet: Installation, here: Site) -> None:
    """A lock is held for longer than the patience with a silent server."""
    lock = "SELECT pg_sleep(1.5) FROM (SELECT 1 FROM jobs_owner WHERE slug = 'acme' FOR UPDATE) o"
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(quiet.servers.sql, lock)
        wait_for(
            lambda: (
                quiet.count(
                    "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(1.5)%'"
                )
                == 1
            )
        )
        paused = here.send("POST", "/owners/acme/pause", {})
        assert paused.status == 200
        held.result()
    assert here.send("POST", "/owners/acme/resume", {}).status == 200
