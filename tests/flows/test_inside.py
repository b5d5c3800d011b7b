"""What a task does from inside, on real workers: progress, checkpoint, steering; and hooks."""

from pathlib import Path
from typing import Any

import pytest

from jobs import submit
from jobs.core import sql
from jobs.core.states import State
from jobs.models import End, EndListener, HookCall, Run
from jobs.owners.tokens import make_token
from jobs.system import ends
from tests.flows.processes import Layout, Processes
from tests.flows.web import site
from tests.flows.world import ended, make_owner, outcomes, reached
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

# A task that asks whether it is cancelled has time to find out.
LAYOUT = Layout(environ={"FAIRSHIFT_CANCEL_GRACE_SECONDS": "20"})
HOOKED = """
from pathlib import Path
from jobs import on_run_end
from jobs.system.hooks import call_hooks

@on_run_end
def note(end):
    with open({path!r}, "a") as file:
        file.write(f"{{end.run_id}} {{end.state}}\\n")

print(call_hooks())
"""


def test_progress_is_seen_over_http_while_the_task_runs(
    stack: Processes, verdict: Any, tmp_path: Path
) -> None:
    """Also from inside a transaction of the task; the last one stays after the end."""
    _, secret = make_token("progress", scopes=["read"], owner=make_owner("acme"))
    go = tmp_path / "go"
    run = submit("flows.report_progress", path=str(go), owner="acme")
    with site(stack, secret) as here:

        def shown(note: str) -> dict[str, Any] | None:
            found = here.send("GET", f"/runs/{run.id}").body["progress"]
            return found if found and found["note"] == note else None

        assert wait_for(lambda: shown("two of four"), seconds=30)["total"] == 4
        assert Run.objects.get(id=run.id).state == State.RUNNING
        go.touch()
        run = ended(run)
        assert here.send("GET", f"/runs/{run.id}").body["progress"]["done"] == 4
    verdict(run)


def test_a_checkpoint_outlives_a_killed_worker(processes: Processes, tmp_path: Path) -> None:
    """The next attempt finds it, although the transaction around it was never committed."""
    worker = processes.start_worker(slots=1)
    processes.start_system_and_beat()
    processes.ready()
    run = submit("flows.go_on", path=str(tmp_path / "never"), owner="acme")
    wait_for(Run.objects.filter(id=run.id, checkpoint__isnull=False).exists, seconds=30)
    worker.kill()
    processes.start_worker("other", slots=1)
    run = ended(run, seconds=60)
    assert (run.state, run.result_value) == (State.SUCCEEDED, {"page": 7})
    assert outcomes(run) == ["worker lost", "succeeded"]
    assert run.checkpoint is None


def test_a_task_sees_that_it_is_cancelled(stack: Processes, verdict: Any) -> None:
    """Without a signal: PostgreSQL says so."""
    run = reached(submit("flows.stop_when_cancelled", owner="acme"), State.RUNNING)
    run.cancel(reason="wrong site")
    run = ended(run)
    assert (run.state, outcomes(run)) == (State.CANCELLED, ["cancelled"])
    assert (run.error_type, run.error_text) == ("Cancel", "asked to stop")
    verdict(run)


@pytest.mark.parametrize(
    ("point", "calls"), [("hooks.after_take", 1), ("hooks.before_call", 1), ("hooks.after_call", 2)]
)
def test_a_hook_is_called_after_a_kill(
    processes: Processes, tmp_path: Path, point: str, calls: int
) -> None:
    """At least once: wherever the process of the hooks is killed."""
    sql.query("DELETE FROM jobs_hookcall")
    ends.listen("hooks")
    path = tmp_path / "calls.log"
    code = HOOKED.format(path=str(path))
    run = submit("tests.add", x=1, y=2, owner="acme")
    run.cancel()
    assert End.objects.filter(run_id=run.id).count() == 1
    killed = processes.python(code, FAULT=f"{point}:1")
    killed.communicate(timeout=300)
    assert killed.returncode != 0
    assert path.exists() == (point == "hooks.after_call")
    HookCall.objects.update(next_at=sql.now())
    assert "'called': 1" in processes.run(code)
    assert path.read_text() == f"{run.id} cancelled\n" * calls
    assert not HookCall.objects.exists() and not End.objects.exists()
    EndListener.objects.all().delete()
