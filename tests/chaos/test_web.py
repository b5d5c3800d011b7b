"""A site whose Redis fails (G9), or that is killed (G10): `make chaos WHAT=web`.

REQUESTS of each fault, RATE of them a second, and KEYS. All settings are the shipped ones.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import count

import pytest
import urllib3

from tests.chaos.figures import amount
from tests.flows.breaking import REDIS
from tests.flows.installation import HEALED_SECONDS, SHIPPED, Installation, installed
from tests.flows.web import CALLERS, Site, site, token_of
from tests.judge.log import SubmitLog

REQUESTS = amount("REQUESTS", 2_000)
RATE = amount("RATE", 60)
KEYS = amount("KEYS", 2_000)
RETRIES = 25
KEYS_OF_A_KILL = 20
SHORT_REQUESTS = 60
SHORT_RATE = 60  # more would take both cores, which other tests need
SHORT_KEYS = 40
FAULTS = ("hung", "refused", "full", "read-only", "replaced")
MOST_SECONDS = 2.0
P99_SECONDS = 0.3
REPLACED_EVERY_SECONDS = 2.0
AFTER_ERROR_SECONDS = 0.05
ANSWER_SECONDS = 60
DRAIN_SECONDS = 120


class Shop:
    """A site with workers and beat, and the callers of its API with their log."""

    def __init__(self, installation: Installation, here: Site) -> None:
        self.installation = installation
        self.here = here
        self._log = SubmitLog(installation.folder / "submits.log")
        self._numbers = count()

    def begin(self) -> None:
        """Begin a scene without runs, in which every process of the site has answered."""
        self.installation.begin()
        # Side by side, each on a connection of its own: one process would answer them all.
        with ThreadPoolExecutor(CALLERS) as pool:
            each = [
                pool.submit(self.here.send, "GET", "/runs", Connection="close")
                for _ in range(4 * CALLERS)
            ]
            assert {one.result().status for one in each} == {200}

    def posted(self, requests: int, *, per_second: int, how: str) -> list[float]:
        """Submit runs while Redis fails; return how many seconds each caller waited.

        The time before a thread was free to send counts as well.
        """
        begun_at = time.monotonic()

        def post(number: int) -> float:
            due_at = begun_at + number / per_second
            time.sleep(max(0.0, due_at - time.monotonic()))
            self._submit(f"order-{next(self._numbers)}")
            return time.monotonic() - due_at

        with REDIS[how](self.installation), ThreadPoolExecutor(CALLERS) as pool:
            each = [pool.submit(post, number) for number in range(requests)]
            while how == "replaced" and not each[-1].done():
                time.sleep(REPLACED_EVERY_SECONDS)  # the time is the fault
                self.installation.servers.redis.restart()
            return [one.result() for one in each]

    def _submit(self, key: str) -> None:
        self._log.intend(key)
        # A connection of its own: the site may close an idle one just when it is used again.
        answer = self.here.send("POST", "/runs", _order(key), Connection="close")
        assert answer.status == 202, answer.body
        self._log.ok(key, [answer.body["id"]])

    def insisted(self, keys: int, *, kill: Callable[[int], None]) -> int:
        """Submit each key by 25 callers at once, until each has an answer, while processes die.

        `kill` is told its turn. Return how many requests were left without an answer.
        """
        unanswered = 0

        def insist(key: str) -> str:
            nonlocal unanswered
            deadline = time.monotonic() + ANSWER_SECONDS
            while True:
                with suppress(urllib3.exceptions.HTTPError):
                    answer = self.here.send(
                        "POST", "/runs", _order(key), **{"Idempotency-Key": key}
                    )
                    assert answer.status == 202, answer.body
                    return str(answer.body["id"])
                unanswered += 1
                assert time.monotonic() < deadline, "no answer for long"
                time.sleep(AFTER_ERROR_SECONDS)

        with ThreadPoolExecutor(RETRIES) as pool:
            for turn in range(keys):
                key = f"order-{next(self._numbers)}"
                self._log.intend(key)
                each: list[Future[str]] = [pool.submit(insist, key) for _ in range(RETRIES)]
                if turn % KEYS_OF_A_KILL == KEYS_OF_A_KILL // 2:
                    kill(turn // KEYS_OF_A_KILL)
                while not all(one.done() for one in each):
                    self.here.watch()
                    time.sleep(0.005)
                [run_id] = {one.result() for one in each}
                self._log.ok(key, [run_id])
        return unanswered

    def judged(self, runs: int) -> float:
        """Have every run start soon, once each; return how many seconds the last one took."""
        resumed = self.installation.caught_up(seconds=DRAIN_SECONDS)
        self.installation.drained(seconds=DRAIN_SECONDS)
        figures = self.installation.verdict().figures
        assert figures["starts"] == figures["runs"] == runs, figures
        return resumed


def _order(key: str) -> dict[str, object]:
    return {"task": "tests.record", "arguments": {"n": 1}, "labels": {"judge_key": key}}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Two web processes, two workers, the system's worker and beat on servers of their own."""
    print("\n" + " ".join(f"{name}={value}" for name, value in SHIPPED.items()))
    with (
        installed(tmp_path_factory.mktemp("shop"), shipped=True) as installation,
        site(installation, token_of(installation), restart=True) as here,
    ):
        yield Shop(installation, here)


@pytest.mark.proof
def test_submits_over_http_need_no_redis(shop: Shop) -> None:
    """One fault after the other: no request takes 2 s, and each of its runs starts once."""
    shop.begin()
    for how in FAULTS:
        waits = shop.posted(SHORT_REQUESTS, per_second=SHORT_RATE, how=how)
        assert max(waits) < MOST_SECONDS, how
    shop.judged(SHORT_REQUESTS * len(FAULTS))


@pytest.mark.chaos
@pytest.mark.parametrize("how", FAULTS)
def test_many_submits_over_http_need_no_redis(shop: Shop, how: str) -> None:
    """None takes 2 s, hardly one 300 ms; each run starts once, within 10 s after the fault."""
    shop.begin()
    waits = sorted(shop.posted(REQUESTS, per_second=RATE, how=how))
    median, p99 = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    print(
        f"{how}, {REQUESTS:,} at {RATE} a second: median {median * 1000:.0f} ms, "
        f"p99 {p99 * 1000:.0f} ms, longest {waits[-1] * 1000:.0f} ms"
    )
    resumed = shop.judged(REQUESTS)
    print(f"the last run started {resumed:.1f} s after the fault")
    assert p99 <= P99_SECONDS
    assert waits[-1] < MOST_SECONDS
    assert resumed < HEALED_SECONDS


@pytest.mark.proof
@pytest.mark.parametrize(
    "keys", [SHORT_KEYS, pytest.param(KEYS, marks=pytest.mark.chaos, id="long")]
)
def test_a_repeated_submit_makes_one_run_though_web_processes_die(shop: Shop, keys: int) -> None:
    """Of each key, 25 callers who repeat until they have an answer hear of the same run."""
    shop.begin()
    kills = 0

    def kill(turn: int) -> None:
        nonlocal kills
        kills += 1
        if turn % 5 == 4:
            shop.here.kill_all()
        else:
            shop.here.kill_one()

    unanswered = rounds = 0
    # On a busy machine few kills may hit a process that has a request just then.
    while not unanswered and rounds < 3:
        rounds += 1
        unanswered += shop.insisted(keys, kill=kill)
    shop.judged(keys * rounds)
    print(f"{keys:,} keys, {RETRIES} times each, {kills} kills, {unanswered:,} without an answer")
    assert unanswered > 0
