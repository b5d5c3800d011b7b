"""The link of each problem leads to the rows that it is about, and not to others."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from jobs import Waves, submit_many
from jobs.core import sql
from jobs.models import Cursor, Job, Leader, Owner, Rollout, Run, Tick, Worker
from jobs.owners.limits import limit_owner, pause_owner
from jobs.recurring import health
from jobs.schedules import slot_of
from jobs.system.notices.endpoints import make_endpoint
from jobs.system.notices.interests import stop, why_stopped
from tests.fleet.fair_queues import Queue
from tests.flows.world import broker_client, publishing_to
from tests.jobs.admin.conftest import stored_job
from tests.jobs.broken import (
    all_have_waited,
    ended_run,
    failing_job,
    pulse_is_missing,
    unapproved_window,
)
from tests.jobs.scenes import admitted, cut_off, living_worker, silence, submitted
from tests.jobs.system.rollups.late import all_late, counted_until
from tests.jobs.system.rollups.minutes import minutes_ago
from tests.jobs.system.verdict.test_rules import CODES, NO_PAGE

PAGE = reverse("jobs:overview")


class Shown(NamedTuple):
    """Texts on the page to which a problem leads: of what it is about, and of other rows."""

    shown: tuple[str, ...]
    hidden: tuple[str, ...] = ()


def lost(hostname: str) -> None:
    silence(Worker.objects.get(hostname=hostname).pk, seconds=60)


def redis(acme: Owner) -> Shown:
    """Made away in the test: see below."""
    [waits], [other] = submitted(acme), submitted(acme)
    Run.objects.filter(pk=other.pk).update(state="cancelled")
    return Shown((str(waits.pk),), (str(other.pk),))


def beat(_acme: Owner) -> Shown:
    Leader.objects.all().delete()
    pulse_is_missing()
    return Shown(("no beat leads", "missing, the last one was"), ("there was none",))


def no_worker(_acme: Owner) -> Shown:
    for name in ("w1@here", "s1@here"):
        lost(name)
    return Shown(("w1@here", "s1@here", "lost"))


def system_worker(_acme: Owner) -> Shown:
    lost("s1@here")
    return Shown(("s1@here", "lost"), ("w1@here",))


def unserved(acme: Owner) -> Shown:
    submitted(acme, 2)
    lost("w1@here")
    return Shown(("w1@here", "lost"), ("s1@here",))


def unsent(acme: Owner) -> Shown:
    given = {"name": "ci", "url": "https://ci.example/", "events": ["run.ended"]}
    make_endpoint(given, owner=acme)
    living_worker("n1@here", queues=("notices",))
    lost("n1@here")
    return Shown(("n1@here", "lost"), ("w1@here",))


def missing_rounds(_acme: Owner) -> Shown:
    name = "fairshift: rescue runs of lost workers"
    PeriodicTask.objects.filter(name=name).delete()
    return Shown((name,), ("fairshift: pulse",))


def stopped(acme: Owner) -> Shown:
    user = User.objects.create_superuser("gone")
    given = {"name": "ci", "url": "https://ci.example/", "events": ["run.ended"]}
    made = make_endpoint(given, owner=acme, actor=user).endpoint
    user.delete()
    made.refresh_from_db()
    stop(made, why_stopped(made))
    return Shown(("ci", "its maker is gone"), ())


def rollout_stopped(acme: Owner) -> Shown:
    waves = Waves(sizes=[1, "100%"])
    made = submit_many(
        "tests.add", [{"x": 1, "y": 2}] * 2, owner=acme, label="firmware", waves=waves
    )
    Rollout.objects.update(state="stopped", reason="1 of 1 ended runs of wave 1 have failed")
    return Shown(("firmware", f"submission={made.pk}", "1 of 1 ended runs"), ())


def pulse(_acme: Owner) -> Shown:
    pulse_is_missing()
    return Shown(("s1@here", "missing, the last one was"), ("w1@here",))


def late(acme: Owner) -> Shown:
    moment = timezone.now() - timezone.timedelta(minutes=3)
    slot = slot_of(moment.replace(second=0, microsecond=0))
    for key, after in (("overdue", 0), ("in-time", 1)):
        phase = (slot // 120 + after) % 600
        columns = {"schedule": "interval", "interval_minutes": 600, "shard": 0, "phase": phase}
        stored_job(acme, key, **columns)
    sql.query("UPDATE jobs_job SET effective_from = now() - interval '1 day'")
    Cursor.objects.update(slot=slot_of(timezone.now()))
    Tick.objects.create(first_slot=slot, end_slot=slot + 1)
    return Shown(("overdue",), ("in-time",))


def unpublished(acme: Owner) -> Shown:
    [waits], [other] = submitted(acme), submitted(acme)
    Run.objects.filter(pk=other.pk).update(state="cancelled")
    sql.query(
        "INSERT INTO jobs_outbox (run_ids, created_at) VALUES (%s, now() - interval '2 min')",
        [[waits.pk]],
    )
    return Shown((str(waits.pk),), (str(other.pk),))


def unknown_task(acme: Owner) -> Shown:
    [waits], [other] = submitted(acme), submitted(acme)
    Run.objects.filter(pk=waits.pk).update(task="shop.gone", blocked_by="task")
    return Shown((str(waits.pk),), (str(other.pk),))


def failing(acme: Owner) -> Shown:
    failing_job(acme, "sync")
    return Shown(("sync", "SupplierTimeout", "Failing since"))


def failing_jobs(acme: Owner) -> Shown:
    for key in ("sync", "import"):
        failing_job(acme, key)
    ended_run(stored_job(acme, "healthy"), "succeeded", minutes=1)
    return Shown(("sync", "import"), ("healthy",))


def broken(acme: Owner) -> Shown:
    stored_job(acme, "wrong", schedule="cron", cron="61 * * * *")
    stored_job(acme, "daily", schedule="cron", cron="@daily")
    return Shown(("wrong",), ("daily",))


def approval(acme: Owner) -> Shown:
    unapproved_window(acme)
    unapproved_window(acme, "weekends")
    return Shown(("nights", "asked for", "Approve…"), ("weekends",))


def starved_paused(acme: Owner) -> Shown:
    submitted(acme, 2)
    all_have_waited(seconds=400)
    submitted(Owner.objects.create(slug="contoso"))
    pause_owner(acme, reason="audit of the year")
    return Shown(("acme", "audit of the year"), ("contoso",))


def starved_at_cap(acme: Owner) -> Shown:
    limit_owner(acme, max_running=1)
    runs = submitted(acme, 3)
    with broker_client() as client:
        [taken] = Queue(client).take(1)
    [first] = [run for run in runs if taken[0].startswith(str(run.pk))]
    admitted(Worker.objects.get(hostname="w1@here").pk, first)
    all_have_waited(seconds=400)
    submitted(Owner.objects.create(slug="contoso"))
    return Shown(("acme", "at its cap of 1", "of at most 1"), ("contoso",))


def objective_burns_fast(acme: Owner) -> Shown:
    Owner.objects.filter(pk=acme.pk).update(wait_objective_seconds=1)
    Owner.objects.create(slug="contoso")
    all_late(acme)
    return Shown(("acme", "missed", "Burn rate"), ("contoso",))


def statistics(_acme: Owner) -> Shown:
    counted_until(minutes_ago(10))
    return Shown(("s1@here",), ("w1@here",))


def lost_worker(_acme: Owner) -> Shown:
    living_worker("w2@here")
    lost("w2@here")
    return Shown(("w2@here", "last <time"), ("w1@here",))


def without_redis(_acme: Owner) -> Shown:
    cut_off(living_worker("w2@here"))
    return Shown(("w2@here", "cannot use Redis"), ("w1@here",))


def clock(_acme: Owner) -> Shown:
    Leader.objects.update(holder="m1:7:ab", clock_ahead_seconds=-90)
    return Shown(("leads", "m1"), ("no beat leads",))


SCENES: Final[Mapping[str, Callable[[Owner], Shown]]] = {
    scene.__name__: scene
    for scene in (
        *(redis, beat, no_worker, system_worker, unserved, unsent, missing_rounds, stopped),
        *(pulse, late, unpublished, unknown_task, failing, broken, approval, rollout_stopped),
        *(starved_paused, starved_at_cap, objective_burns_fast, statistics, lost_worker),
        *(without_redis, clock),
    )
} | {"failing jobs": failing_jobs}
"""By the code of the problem, and a second word where there are several."""


def test_every_problem_has_a_scene() -> None:
    named = {name.partition("_")[0].partition(" ")[0] for name in (*SCENES, *NO_PAGE)}
    assert named == {code.partition("_")[0] for code in CODES}


@pytest.mark.parametrize("name", SCENES)
def test_the_link_shows_what_the_problem_is_about(
    as_chief: Client, acme: Owner, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing that the problem is not about."""
    monkeypatch.setattr(health, "LATE_MILLISECONDS", 10_000)
    wanted = SCENES[name](acme)
    broker = "redis://127.0.0.1:1/0" if name == "redis" else None
    if broker is None:
        follow(as_chief, name, wanted)
        return
    with monkeypatch.context() as patched, publishing_to(broker, patched):
        follow(as_chief, name, wanted)


def follow(client: Client, name: str, wanted: Shown) -> None:
    """Open the overview, follow the link of the problem, and look at the page."""
    urls = {problem.code: url for problem, url in client.get(PAGE).context["problems"]}
    code = name.partition(" ")[0]
    assert code in urls, urls
    answer = client.get(urls[code])
    assert answer.status_code == 200
    text = main_of(answer)
    assert all(word in text for word in wanted.shown), urls[code]
    assert not [word for word in wanted.hidden if word in text], urls[code]


def main_of(answer: Any) -> str:
    """Return the page without its header and footer, which name owners and pages."""
    text: str = answer.content.decode()
    return text.partition("<main")[2].partition("</main>")[0]


def test_a_visitor_gets_no_link_to_a_page_that_is_not_theirs(
    as_chief: Client, acme: Owner, person: Callable[..., Client]
) -> None:
    """The problem is named all the same."""
    failing_job(acme, "sync")
    mia = person("mia", "view_run", acme="viewer")
    [(problem, url)] = mia.get(PAGE).context["problems"]
    assert (problem.code, url) == ("failing", "")
    ann = person("ann", "view_run", "view_job", acme="viewer")
    [(_problem, url)] = ann.get(PAGE).context["problems"]
    assert url == reverse("jobs:job", args=[Job.objects.get(key="sync").pk])
    assert ann.get(url).status_code == 200
    User.objects.filter(username__in=("mia", "ann")).delete()
