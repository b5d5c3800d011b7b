"""Keys rotate under load."""

import time
from typing import Any

import pytest

from jobs import submit
from jobs.models import Owner, Run
from tests.flows.processes import Processes
from tests.flows.world import ended
from tests.jobs.keys import KEY_1, KEY_2, use_ring

pytestmark = pytest.mark.proof


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.chaos)])
def test_keys_rotate_while_runs_go_on(
    processes: Processes, owner: Owner, settings: Any, kills: int
) -> None:
    """Workers with the old and the new ring, some killed, and re-encryptions killed midway.

    No run fails, none is lost, and nothing is unreadable.
    """
    old = {"FAIRSHIFT_ENCRYPTION_KEYS": KEY_1}
    both = {"FAIRSHIFT_ENCRYPTION_KEYS": f"{KEY_1},{KEY_2}"}
    use_ring(settings, KEY_1)
    workers = [processes.start_worker(f"old-{number}", **old) for number in range(2)]
    processes.start_system_and_beat(**both)
    processes.ready()
    runs = [_recorded(owner, number) for number in range(60)]
    use_ring(settings, KEY_1, KEY_2)
    for kill in range(kills):
        runs += [_recorded(owner, len(runs) + number) for number in range(30)]
        if kill % 2:
            killed = processes.python(_REENCRYPT, **both)
            time.sleep(0.2 * (kill % 4))
            killed.kill()
            killed.wait()
        else:
            workers.pop(0).kill()
            workers.append(processes.start_worker(f"new-{kill}", **both))
            processes.ready()
    whole = [ended(run, seconds=60) for run in runs]
    assert {run.state for run in whole} == {"succeeded"}
    processes.run(_REENCRYPT, **both)
    use_ring(settings, KEY_2)
    for number, run in enumerate(whole):
        run.refresh_from_db()
        assert (run.payload_key, run.result_key) == (2, 2)
        assert run.arguments[1]["n"] == number == run.result_value["n"]


_REENCRYPT = "from django.core.management import call_command as c; c('secrets', 'reencrypt')"


def _recorded(owner: Owner, number: int) -> Run:
    return submit("tests.record", number, 0.01, owner=owner, max_attempts=20)
