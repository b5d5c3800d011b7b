"""PostgreSQL, Redis or a web process fails: each request is answered within 2 s, none is lost."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
import urllib3

from tests.flows.installation import Installation, installed
from tests.flows.redis_faults import break_redis, heal_redis
from tests.flows.web import Answer, Site, site
from tests.waiting import wait_for

# Time limits of real web processes: not beside the other lanes of `make test`.
pytestmark = pytest.mark.proof

MOST_SECONDS = 2.0
RUNS = "SELECT count(*) FROM jobs_run"
MAKE_TOKEN = """
from jobs.models import Owner
from jobs.owners.tokens import make_token
scopes = ["read", "submit", "operate", "approve", "admin"]
print("token", make_token("scene", scopes=scopes, owner=Owner.objects.get(slug="acme")).secret)
"""
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
    output, _ = quiet.python(MAKE_TOKEN, **quiet.urls).communicate(timeout=60)
    [token] = [line.split()[1] for line in output.splitlines() if line.startswith("token ")]
    with site(quiet, token, **quiet.urls) as running:
        yield running


def ask_all(here: Site) -> list[Answer]:
    """Send every request twice, four at a time."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda one: here.send(*one), REQUESTS * 2))


@pytest.mark.parametrize("how", ["frozen", "killed"])
def test_a_server_that_is_away_is_said_within_2_seconds(
    quiet: Installation, here: Site, how: str
) -> None:
    """503 with Retry-After, nothing is stored; afterwards the same requests are answered."""
    assert {answer.status for answer in ask_all(here)} == {200, 202}
    before = quiet.count(RUNS)
    postgres = quiet.servers.postgres
    if how == "frozen":
        postgres.freeze()
    else:
        postgres.kill()
    try:
        # The second time on no connection at all.
        answers = ask_all(here) + ask_all(here)
    finally:
        if how == "frozen":
            postgres.thaw()
        else:
            postgres.start()
    assert {answer.status for answer in answers} == {503}
    assert {answer.body["code"] for answer in answers} == {"database_away"}
    assert all(int(answer.headers["Retry-After"]) >= 1 for answer in answers)
    assert max(answer.seconds for answer in answers) < MOST_SECONDS
    assert quiet.count(RUNS) == before
    wait_for(lambda: here.send("GET", "/runs").status == 200, seconds=10)
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


@pytest.mark.parametrize("how", ["hung", "refused", "read-only", "full"])
def test_a_submit_over_http_needs_no_redis(quiet: Installation, here: Site, how: str) -> None:
    """Each is stored and answered; none takes 2 s."""
    before = quiet.count(RUNS)
    break_redis(quiet, how)
    try:
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: here.send("POST", "/runs", ADD), range(60)))
    finally:
        heal_redis(quiet, how)
    assert {answer.status for answer in answers} == {202}
    assert max(answer.seconds for answer in answers) < MOST_SECONDS
    assert quiet.count(RUNS) - before == len({answer.body["id"] for answer in answers}) == 60


def test_a_repeated_submit_makes_one_run_though_web_processes_die(
    quiet: Installation, here: Site
) -> None:
    """20 keys, 25 callers at once for each; every caller repeats until it has an answer."""
    before = quiet.count(RUNS)
    deadline = time.monotonic() + 60

    def insist(key: str) -> tuple[str, str]:
        while True:
            assert time.monotonic() < deadline
            with suppress(urllib3.exceptions.HTTPError):
                answer = here.send("POST", "/runs", ADD, **{"Idempotency-Key": key})
                assert answer.status == 202, answer.body
                return key, answer.body["id"]

    keys = [f"order-{number}" for number in range(20)]
    with ThreadPoolExecutor(25) as pool:
        asked = pool.map(insist, [key for key in keys for _ in range(25)])
        for place, _ in enumerate(keys):
            wanted = before + place
            wait_for(lambda wanted=wanted: quiet.count(RUNS) >= wanted, seconds=30)
            if place % 5 == 4:
                here.kill_one()
        found = set(asked)
    assert len(found) == len(keys) == quiet.count(RUNS) - before
