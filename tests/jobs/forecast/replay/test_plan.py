"""jobs/forecast/replay: a plan from the rows of attempts, from statistics, and by the command."""

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from fleet import Kind
from jobs import Waves, submit_many
from jobs.core import sql
from jobs.core.errors import OptionError
from jobs.core.states import State
from jobs.forecast.replay.changes import Changes, read_changes
from jobs.forecast.replay.load import OutOfTime
from jobs.forecast.replay.plan import Plan, make_plan
from jobs.forecast.replay.rolled import MOST_ATTEMPTS
from jobs.models import Attempt, Calendar, Owner, Rollout, Run
from jobs.rollouts import rounds
from jobs.runs.recording import move, record
from jobs.system.promotion import promote, queue_due
from jobs.system.rollups.histogram import GROWTH
from tests.jobs.scenes import admitted, living_worker, submitted, told
from tests.jobs.system.rollups.minutes import ended, minutes_ago, rolled_up

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


@pytest.fixture
def start(acme: Owner) -> datetime:
    """The start of the span: ten minutes ago, at a full minute."""
    [row] = sql.query("SELECT date_trunc('minute', clock_timestamp()) AS at")
    return row["at"] - timedelta(minutes=10)


def took(run: Run, queued: datetime, *, wait: float, run_seconds: float) -> None:
    """Have a run's newest attempt been queued then, and have waited and run for so long."""
    started = queued + wait * SECOND
    sql.query(
        "UPDATE jobs_attempt SET queued_at = %s, started_at = %s, ended_at = %s, recorded_at = %s "
        "WHERE (run_id, token) = (SELECT run_id, max(token) FROM jobs_attempt WHERE run_id = %s "
        "GROUP BY run_id)",
        [queued, started, *[started + run_seconds * SECOND] * 2, run.id],
    )


def recorded(
    owner: Owner,
    queued: datetime,
    *,
    wait: float,
    run: float,
    kind: Kind = Kind.SUCCEEDED,
    **facts: Any,
) -> Run:
    """Return a run with one attempt."""
    [made] = submitted(owner, **facts)
    more = {"delay": 0.0, "error_type": "OSError"} if kind is Kind.RETRYING else {}
    record([told(admitted(living_worker(), made), kind, **more)])
    took(made, queued, wait=wait, run_seconds=run)
    # The worker lives now, and not in the span: its slots would seem idle.
    sql.query("DELETE FROM jobs_worker")
    return made


def plan(start: datetime, **facts: Any) -> Plan:
    """Return the plan of nine minutes."""
    given = {"changes": Changes(), "growth": GROWTH, "most_runs": 1000, **facts}
    return make_plan(start=start, end=start + timedelta(minutes=9), **given)


def test_today_s_settings_give_the_recorded_waits(start: datetime, acme: Owner) -> None:
    """Four runs of a second in one slot, queued at once."""
    for number in range(4):
        recorded(acme, start, wait=number, run=1)
    found = plan(start, changes=Changes(slots=1))
    [said], [real] = found.replayed, found.recorded
    assert (said.started, said.p50, said.longest) == (4, 1, 3)
    assert (real.started, real.p50, real.longest) == (4, 1, 3)
    assert found.is_from_rows and found.each == 1


def test_a_retry_is_a_start_of_its_own(start: datetime, acme: Owner) -> None:
    """It comes as long after the end of its first attempt as it was."""
    run = recorded(acme, start, wait=0, run=1, kind=Kind.RETRYING)
    move([run.id], to=State.QUEUED)
    run.refresh_from_db()
    record([told(admitted(living_worker(), run), Kind.SUCCEEDED)])
    took(run, start + 3 * SECOND, wait=1, run_seconds=1)
    found = plan(start, changes=Changes(slots=1))
    assert found.recorded[0].started == found.replayed[0].started == 2
    assert found.ends_after_seconds == pytest.approx(4, abs=1.1)


def test_a_wave_begins_as_long_after_the_others_as_it_did(start: datetime, acme: Owner) -> None:
    """With twice the slots the first wave ends earlier, and so does the second."""
    calls = [{"x": number, "y": 0} for number in range(5)]
    waves = Waves(sizes=[4, "100%"], between=timedelta(seconds=10))
    made = submit_many("tests.add", calls, owner=acme, waves=waves)
    runs = list(made.runs.order_by("id"))
    for number, run in enumerate(runs[:4]):
        record([told(admitted(living_worker(), run), Kind.SUCCEEDED)])
        took(run, start, wait=number * 5, run_seconds=5)
    rounds.advance(queue_due)
    Rollout.objects.update(next_at=start)
    while rounds.advance(queue_due):
        promote()
    runs[4].refresh_from_db()
    record([told(admitted(living_worker(), runs[4]), Kind.SUCCEEDED)])
    took(runs[4], start + 30 * SECOND, wait=0, run_seconds=5)
    sql.query("DELETE FROM jobs_worker")
    sql.query("UPDATE jobs_run SET created_at = %s", [start])
    found = Rollout.objects.get()
    found.waves[0]["ended_at"] = (start + 20 * SECOND).isoformat()
    found.waves[1]["released_at"] = (start + 30 * SECOND).isoformat()
    found.save()
    for slots, end in ((1, 35), (4, 20)):
        ends = plan(start, changes=Changes(slots=slots)).ends_after_seconds
        assert ends == pytest.approx(end, abs=1.1)


def test_windows_are_changed(start: datetime, acme: Owner) -> None:
    """A run waits for the new window of its calendar, and that is no wait."""
    recorded(acme, start, wait=0, run=1)
    calendar = Calendar.objects.create(owner=acme, name="nights", needs_approval=False)
    calendar.attachments.create(owner=acme)
    Owner.objects.filter(pk=acme.pk).update(calendar_version=1)
    sql.query("UPDATE jobs_run SET created_at = %s", [start])
    opens = (start + timedelta(hours=3)).astimezone(UTC)
    text = f"nights={opens:%H:%M}-{opens + timedelta(hours=1):%H:%M}"
    found = plan(start, changes=read_changes(windows=[text]))
    assert found.replayed[0].longest == pytest.approx(0, abs=0.1)
    assert found.ends_after_seconds == pytest.approx(3 * 3600, abs=2)
    with pytest.raises(OptionError, match="there is no calendar"):
        plan(start, changes=read_changes(windows=["days=always"]))


def test_without_rows_the_statistics_are_replayed(start: datetime, acme: Owner) -> None:
    """With the waits of their buckets; windows are not known then."""
    for number in range(4):
        recorded(acme, start + 60 * SECOND, wait=number, run=1)
    rolled_up()
    Attempt.objects.all().delete()
    found = plan(start)
    assert not found.is_from_rows
    [real], [said] = found.recorded, found.replayed
    assert real.started == said.started == 4
    assert real.longest == pytest.approx(3, rel=0.05)
    Calendar.objects.create(owner=acme, name="nights")
    with pytest.raises(OptionError, match="were removed"):
        plan(start, changes=read_changes(windows=["nights=always"]))


def test_the_command_prints_a_plan(
    start: datetime, acme: Owner, capsys: pytest.CaptureFixture[str]
) -> None:
    """As lines, and as one object; an objective without a number is that of each owner."""
    Owner.objects.filter(pk=acme.pk).update(wait_objective_seconds=1)
    for number in range(3):
        recorded(acme, start, wait=number, run=1)
    for objective in (["--slots", "1", "--objective", "1.5"], ["--objective"]):
        call_command("plan", "--from", start.isoformat(), *objective)
        assert "The objective needs 2 slots" in capsys.readouterr().out
    call_command("plan", "--from", start.isoformat(), "--slots", "1", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["runs"], found["slots"], found["replayed"][0]["owner"]) == (3, 1, "acme")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--slots", "0"], "--slots: is 1 to 10,000, not 0"),
        (["--weight", "acme=0"], "--weight: is OWNER=NUMBER from 1 to 1,000"),
        (["--weight", "nobody=1"], "--weight: there is no owner 'nobody'"),
        (["--cap", "acme"], "--cap: is OWNER=NUMBER from 0"),
        (["--window", "nights"], "--window: is NAME=HH:MM-HH:MM"),
        (["--from", "2020-01-01", "--to", "2020-03-01"], "--to: is at most 31 days"),
        (["--from", "2020-01-02", "--to", "2020-01-01"], "--to: is not later than from"),
        (["--objective", "x"], "is no number"),
        (["--from", "yesterday"], "is no time"),
    ],
)
def test_wrong_options_are_named(acme: Owner, given: list[str], words: str) -> None:
    with pytest.raises(CommandError) as error:
        call_command("plan", *given)
    assert words in str(error.value)


# --- statistics are read within a time and a number of attempts ---------------------------


@pytest.fixture
def rolled_start(acme: Owner) -> datetime:
    """The start of a span of which only statistics are left: two minutes with an attempt each."""
    for minute in (4, 3):
        ended(acme, minutes_ago(minute))
    rolled_up()
    Attempt.objects.all().delete()
    return minutes_ago(10)


def test_a_plan_gives_up_in_time_while_it_reads_statistics(rolled_start: datetime) -> None:
    """The time of a plan is for reading, too: two calls are too few for the replay to look."""
    assert plan(rolled_start, seconds=60.0).runs == 2
    with pytest.raises(OutOfTime):
        plan(rolled_start, seconds=-1.0)


def test_a_span_with_too_many_attempts_is_refused_at_once(rolled_start: datetime) -> None:
    """The refusal names the field and the limit, and nothing is read."""
    sql.query(
        "UPDATE jobs_rollup SET wait_counts = ARRAY[%(count)s], run_counts = ARRAY[%(count)s]",
        {"count": MOST_ATTEMPTS // 2 + 1},
    )
    began = time.monotonic()
    with pytest.raises(OptionError) as refused:
        plan(rolled_start)
    assert refused.value.option == "to"
    assert f"{MOST_ATTEMPTS:,} at most" in refused.value.problem
    assert time.monotonic() - began < 10
