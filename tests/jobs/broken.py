"""What breaks in an installation, as rows: for the verdict of the overview and its links."""

from datetime import timedelta

from fleet.keys import queue_key
from jobs.core import sql
from jobs.core.ids import scheduled_id
from jobs.core.sql import now
from jobs.models import Job, Owner, Run, Window
from tests.flows.world import broker_client
from tests.jobs.admin.conftest import stored_job
from tests.jobs.scenes import submitted
from tests.jobs.windows_world import calendar_of, window

_AGE = """
for _, id in ipairs(redis.call('HKEYS', KEYS[1])) do
    local facts = {cmsgpack.unpack(redis.call('HGET', KEYS[1], id))}
    facts[7] = facts[7] - ARGV[1]
    redis.call('HSET', KEYS[1], id, cmsgpack.pack(unpack(facts)))
end
"""
"""The seventh fact of a message is when it came: see pack_message in messages.lua."""
ERROR = "shop.errors.SupplierTimeout"


def pulse_is_missing(*, minutes: int = 2) -> None:
    """Let the last pulse be that old."""
    sql.query(
        "UPDATE jobs_cursor SET beat_at = clock_timestamp() - make_interval(mins => %s)", [minutes]
    )


def all_have_waited(*, seconds: float) -> None:
    """Let the messages in the fair queue have come that much earlier."""
    with broker_client() as client:
        client.eval(_AGE, 1, queue_key("jobs", "meta"), round(seconds * 1_000_000))


def failing_job(owner: Owner, key: str, *, minutes: int = 90) -> Job:
    """Return a job whose runs have failed since then, and succeeded before."""
    job = stored_job(owner, key)
    for ago in (minutes, minutes // 2, 1):
        ended_run(job, "failed", minutes=ago, error_type=ERROR, error_message="no answer")
    ended_run(job, "succeeded", minutes=minutes + 1)
    return job


def ended_run(job: Job, state: str, *, minutes: int, **columns: str) -> Run:
    """Return a run of a job that was due, and ended, that many minutes ago."""
    [run] = submitted(job.owner)
    due = now() - timedelta(minutes=minutes)
    Run.objects.filter(pk=run.pk).update(
        id=scheduled_id(job.pk, due),
        job=job,
        state=state,
        due_at=due,
        started_at=due,
        ended_at=due + timedelta(seconds=2),
        **columns,
    )
    return Run.objects.get(job=job, due_at=due)


def unapproved_window(owner: Owner, name: str = "nights") -> Window:
    """Return a window of a new calendar that nobody has approved, for which three runs wait."""
    made = window(calendar_of(owner, name, needs_approval=True), opens_in=3_600, seconds=600)
    submitted(owner, 3)
    return made
