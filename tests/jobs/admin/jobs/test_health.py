"""Jobs found by what needs somebody: late, failing, paused, broken; each by index."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs.core import sql
from jobs.core.ids import scheduled_id
from jobs.models import Cursor, Job, Owner, Run, Tick
from jobs.recurring import health as health_module
from jobs.schedules import slot_of
from tests.jobs.admin.conftest import stored_job

Person = Callable[..., Client]
SEES = ("view_job", "view_missed")


def keys(client: Client, **query: Any) -> list[str]:
    """Return the keys of the jobs that a list shows, in its order."""
    answer = client.get(reverse("admin:jobs_job_changelist", query=query))
    assert answer.status_code == 200
    return [row.key for row in answer.context["cl"].result_list]


def ended(of: Job, state: str, *, at: datetime) -> None:
    Run.objects.create(
        id=scheduled_id(of.pk, at),
        owner=of.owner,
        job=of,
        task=of.task,
        queue="jobs",
        state=state,
        payload=b"{}",
        max_attempts=1,
        history=[],
    )


def handed_out(until: datetime) -> None:
    """Let the pulse have handed out all slots before a moment, to ticks that are done."""
    Cursor.objects.update(slot=slot_of(until))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches with time enough, for a machine that is busy with other tests."""
    for limit in ("MILLISECONDS", "LATE_MILLISECONDS"):
        monkeypatch.setattr(health_module, limit, 10_000)


@pytest.fixture
def due(acme: Owner, stranger: Owner) -> datetime:
    """A moment three minutes ago, at which five jobs of acme and one of a stranger were due."""
    moment = (timezone.now() - timedelta(minutes=3)).replace(second=0, microsecond=0)
    minute = slot_of(moment) // 120
    interval = {"schedule": "interval", "interval_minutes": 600, "shard": 0}
    at_moment = {**interval, "phase": minute % 600}
    stored_job(acme, "interval", **at_moment)
    stored_job(acme, "another minute", **interval, phase=(minute + 1) % 600)
    stored_job(acme, "cron", schedule="cron", cron=f"{moment:%M %H} * * *")
    stored_job(acme, "once", schedule="once", once_at=moment)
    stored_job(acme, "disabled", **at_moment, enabled=False)
    stored_job(acme, "paused", **at_moment, paused_until=moment.replace(year=2100))
    stored_job(acme, "ended", **at_moment, end_at=moment - timedelta(days=1))
    stored_job(acme, "manual")
    stored_job(stranger, "strange", **at_moment)
    # Their schedules were written long ago.
    sql.query("UPDATE jobs_job SET effective_from = now() - interval '1 day'")
    Job.objects.filter(key="paused").update(paused_from=moment - timedelta(hours=1))
    return moment


LATE = ["cron", "interval", "once"]


def test_jobs_of_an_open_tick_are_late_after_a_minute(
    as_root: Client, acme: Owner, due: datetime
) -> None:
    """Those that were due in it, and no others."""
    handed_out(timezone.now())
    assert keys(as_root, health="late") == []
    slot = slot_of(due)
    tick = Tick.objects.create(first_slot=slot, end_slot=slot + 1)
    assert keys(as_root, health="late", owner="acme") == LATE
    assert keys(as_root, health="late") == [*LATE, "strange"]
    Tick.objects.filter(pk=tick.pk).update(done_at=timezone.now())
    assert keys(as_root, health="late") == []


def test_jobs_of_slots_that_nobody_hands_out_are_late(
    as_root: Client, acme: Owner, due: datetime
) -> None:
    """When beat is silent there is no tick either: then the cursor tells."""
    handed_out(due - timedelta(seconds=10))
    found = keys(as_root, health="late", owner="acme")
    assert set(LATE) <= set(found)
    assert not {"disabled", "paused", "ended", "manual"} & set(found)


def test_what_a_catch_up_has_passed_is_not_late(
    as_root: Client, acme: Owner, due: datetime
) -> None:
    """Its tick goes over the jobs in their order, and is open until the last."""
    handed_out(timezone.now())
    passed = Job.objects.get(key="cron")
    Tick.objects.create(
        first_slot=slot_of(due), end_slot=slot_of(due) + 9, kind="catch_up", after_job=passed.pk
    )
    assert keys(as_root, health="late", owner="acme") == ["once"]


def test_a_job_is_failing_when_its_last_run_that_ended_has_failed(
    as_root: Client, acme: Owner
) -> None:
    """One that has succeeded since is well again; one that runs now is still failing."""
    now = timezone.now()
    failing, well, running = (stored_job(acme, key) for key in ("failing", "well", "running"))
    for of in (failing, well, running):
        ended(of, "failed", at=now - timedelta(minutes=9))
    ended(well, "succeeded", at=now - timedelta(minutes=8))
    ended(running, "running", at=now - timedelta(minutes=7))
    stored_job(acme, "never run")
    assert keys(as_root, health="failing") == ["failing", "running"]


def test_jobs_whose_schedule_cannot_be_followed_are_broken(as_root: Client, acme: Owner) -> None:
    """Enabled ones: nobody waits for the others."""
    stored_job(acme, "bad cron", schedule="cron", cron="61 * * * *")
    stored_job(acme, "bad zone", schedule="cron", cron="@daily", zone="Mars/Olympus")
    stored_job(acme, "no cron", schedule="cron")
    stored_job(acme, "no place", schedule="interval", interval_minutes=5)
    stored_job(acme, "no time", schedule="once")
    stored_job(acme, "no seconds", schedule="seconds")
    stored_job(acme, "what", schedule="yearly")
    stored_job(acme, "off", schedule="once", enabled=False)
    stored_job(acme, "good", schedule="cron", cron="@daily")
    stored_job(acme, "manual")
    found = ["bad cron", "bad zone", "no cron", "no place", "no seconds", "no time", "what"]
    assert keys(as_root, health="broken") == found


@pytest.mark.parametrize("health", ["late", "failing", "paused", "broken"])
def test_health_tells_nothing_of_other_owners(
    person: Person, acme: Owner, stranger: Owner, due: datetime, health: str
) -> None:
    """Also where the address asks for one of them; one's own are found."""
    handed_out(due - timedelta(seconds=10))
    for owner, key in ((acme, "interval"), (stranger, "strange")):
        ended(Job.objects.get(key=key), "failed", at=due)
        stored_job(owner, f"{key} broken", schedule="once")
        stored_job(owner, f"{key} paused", paused_until=timezone.now() + timedelta(hours=1))
    client = person("ann", *SEES, acme="viewer")
    own = {"late": "interval", "failing": "interval"}.get(health, f"interval {health}")
    found = keys(client, health=health)
    assert own in found and not [key for key in found if key.startswith("strange")]
    assert keys(client, health=health, owner="stranger") == []


def test_jobs_are_searched_by_how_key_or_name_begins(
    person: Person, as_root: Client, acme: Owner, stranger: Owner
) -> None:
    """The key as it is, the name in any case; nobody finds another owner's."""
    stored_job(acme, "Backup-1", name="Nightly")
    stored_job(acme, "other", name="backup 2")
    stored_job(acme, "100%")
    stored_job(stranger, "Backup-9")
    assert keys(as_root, q="Backup") == ["Backup-1", "other", "Backup-9"]
    assert keys(as_root, q="backup") == ["other"]
    assert keys(as_root, q="%") == []
    assert keys(as_root, q="100%") == ["100%"]
    assert keys(person("ann", *SEES, acme="viewer"), q="Backup") == ["Backup-1", "other"]


@pytest.mark.parametrize(
    ("silent_seconds", "is_open", "pulse"),
    [(0, False, "on time"), (0, True, "on time"), (60, False, "missing, the last one was")],
)
def test_the_page_of_workers_says_whether_due_times_are_triggered(
    as_root: Client, silent_seconds: int, is_open: bool, pulse: str
) -> None:
    """They are: beat has just sent a pulse, and no tick has been open for a minute."""
    now = timezone.now()
    Cursor.objects.update(slot=slot_of(now), beat_at=now - timedelta(seconds=silent_seconds))
    if is_open:
        slot = slot_of(now - timedelta(minutes=5))
        Tick.objects.create(first_slot=slot, end_slot=slot + 1)
    shown = as_root.get(reverse("jobs:workers")).content.decode()
    assert pulse in shown and f"<dd>{int(is_open)}</dd>" in shown
    assert ("Behind since" in shown, "health=late" in shown) == (is_open, is_open)


def is_all(client: Client, health: str) -> bool:
    """Say whether a list claims to show all that need somebody."""
    page = client.get(reverse("admin:jobs_job_changelist", query={"health": health}))
    return "may be more" not in page.content.decode()


@pytest.mark.parametrize("health", ["late", "failing", "broken"])
def test_a_list_that_was_cut_says_that_there_may_be_more(
    as_root: Client, acme: Owner, due: datetime, health: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of exactly as many as are shown is all of them; one more is a cut."""
    handed_out(due - timedelta(seconds=10))
    Job.objects.filter(key="another minute").delete()
    for key in ("interval", "cron", "once", "strange"):
        ended(Job.objects.get(key=key), "failed", at=due)
        stored_job(acme, f"broken {key}", schedule="once")
    monkeypatch.setattr(health_module, "MOST", 4)
    assert is_all(as_root, health) and len(keys(as_root, health=health)) == 4
    monkeypatch.setattr(health_module, "MOST", 3)
    assert not is_all(as_root, health) and len(keys(as_root, health=health)) == 3


def test_the_sites_clock_decides_nothing(
    as_root: Client, acme: Owner, due: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL has written what is compared: a site that is an hour ahead finds no fault."""
    now = timezone.now()
    handed_out(now)
    Cursor.objects.update(beat_at=now)
    monkeypatch.setattr(timezone, "now", lambda: now + timedelta(hours=1))
    assert keys(as_root, health="late") == []
    shown = as_root.get(reverse("jobs:workers")).content.decode()
    assert "on time" in shown and "Behind since" not in shown
