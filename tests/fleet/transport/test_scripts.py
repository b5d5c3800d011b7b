"""fleet/transport/scripts.py: scripts that are sent before the last one was answered."""

from collections.abc import Iterator

import pytest
import redis
from celery import current_app

from fleet.broker.sender import CHUNK, Sender
from fleet.transport import scripts
from tests.fleet.hinting import QUEUE, hint
from tests.jobs.scenes import hinted

COUNT = 3 * CHUNK + 7


def send_all() -> list[str]:
    """Send more hints than go out at once; return their runs, in order."""
    sent = [hint() for _ in range(COUNT)]
    with current_app.connection_for_write() as connection:
        Sender(current_app).send(connection.default_channel, sent)
    return [each.run_id for each in sent]


def test_a_server_that_has_forgotten_the_scripts_is_told(client: redis.Redis) -> None:
    """After a restart: nothing of a script that it does not know has happened."""
    client.flushdb()
    client.script_flush()
    assert send_all() == [str(run_id) for run_id in hinted()]


def test_who_fails_on_the_way_leaves_no_answers_behind(client: redis.Redis) -> None:
    """They would be taken for answers to the next calls on the same connection."""
    client.flushdb()

    def calls() -> Iterator[tuple[str, scripts.Call]]:
        for number in range(3):
            yield QUEUE, ("purge", (number,))
        raise TimeoutError("the time is up")

    with pytest.raises(TimeoutError):
        scripts.run_pipelined(client, calls())
    for number in range(20):
        assert client.echo(f"{number}") == f"{number}".encode()


def test_an_error_of_a_script_is_raised_when_all_have_run(client: redis.Redis) -> None:
    """As where each call is awaited."""
    client.flushdb()
    refused = QUEUE, ("hints", ("no number", "tests.add", "a run"))
    with pytest.raises(redis.ResponseError):
        scripts.run_pipelined(client, [refused, (QUEUE, ("purge", (10,)))])
    assert client.echo("1") == b"1"
