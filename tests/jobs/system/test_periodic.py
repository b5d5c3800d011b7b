"""jobs/system/periodic.py: PeriodicTasks that drive Fairshift are made again if they are gone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from django.apps import apps
from django.core.management import call_command
from django.db.models.signals import post_migrate
from django_celery_beat.models import PeriodicTask, PeriodicTasks

from jobs.checks.database import check_deployed_database
from jobs.core import sql
from jobs.models import Job, Owner
from jobs.system.beat import ROUNDS
from jobs.system.partitions import make_partitions
from jobs.system.verdict.operator import Operator
from jobs.system.verdict.reading import read
from jobs.system.verdict.rules import problems_of
from jobs.tasks import settle
from tests.jobs.admin.conftest import stored_job
from tests.jobs.system.test_beat import Beat, beat

__all__ = ["beat"]


def ours() -> dict[str, tuple[Any, ...]]:
    """Return Fairshift's PeriodicTasks by name."""
    rows = PeriodicTask.objects.filter(name__startswith="fairshift")
    facts = ("task", "args", "queue", "priority", "enabled", "interval__every", "interval__period")
    return {row[0]: row[1:] for row in rows.values_list("name", *facts)}


def flushed() -> None:
    """Do to PeriodicTasks what `manage.py flush` does: all rows go, then post_migrate is sent."""
    PeriodicTask.objects.all().delete()
    PeriodicTasks.objects.all().delete()
    config = apps.get_app_config("jobs")
    post_migrate.send(
        sender=config, app_config=config, using="default", verbosity=0, interactive=False, apps=apps
    )


def test_migrate_and_flush_make_one_for_each_round(db: None) -> None:
    """Under a name that Celery knows, on the queue of the system worker."""
    before = ours()
    assert sorted(task for task, *_ in before.values()) == sorted(ROUNDS & set(current_app.tasks))
    assert {queue for _task, _args, queue, *_ in before.values()} == {"system"}
    flushed()
    assert ours() == before


def test_what_an_operator_has_changed_stays(db: None) -> None:
    """Switched off, slower, or under another name: none of these is missing."""
    PeriodicTask.objects.filter(name="fairshift: rescue runs of lost workers").update(enabled=False)
    slow = PeriodicTask.objects.get(name="fairshift: promote due runs").interval
    PeriodicTask.objects.filter(name="fairshift: pulse").update(interval=slow, queue="inner")
    PeriodicTask.objects.filter(name="fairshift: record pauses").update(name="settle")
    before = {*PeriodicTask.objects.values_list("name", "enabled", "interval", "queue")}
    config = apps.get_app_config("jobs")
    post_migrate.send(sender=config, app_config=config, using="default", apps=apps)
    assert {*PeriodicTask.objects.values_list("name", "enabled", "interval", "queue")} == before


def test_none_comes_back_when_the_migrations_are_taken_back(db: None) -> None:
    """An installation that leaves keeps nothing: while a migration is not applied, none is made."""
    PeriodicTask.objects.all().delete()
    sql.query("DELETE FROM django_migrations WHERE app = 'jobs' AND name LIKE '0005%%'")
    flushed()
    assert ours() == {}


def test_beat_looks_again_each_minute(beat: Beat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while it runs: an operator or a flush may delete them at any time."""
    from jobs.system import beat as module

    monkeypatch.setattr(module, "MAKE_SECONDS", 0.0)
    beat.turn()
    assert "fairshift: pulse" in ours()
    PeriodicTask.objects.filter(name="fairshift: pulse").delete()
    beat.turn()
    assert "fairshift: pulse" in ours()


@pytest.mark.parametrize(
    "spoil",
    [lambda rescue: rescue.delete(), lambda rescue: rescue.update(task="x.y")],
    ids=["deleted", "sends another task"],
)
def test_a_missing_one_is_named(spoil: Callable[[Any], None], db: None, broker: Any) -> None:
    """By the check, and by the verdict of the overview, which doctor and status show too."""
    make_partitions(days_ahead=7)
    assert "fairshift.W116" not in {found.id for found in check_deployed_database()}
    assert "missing_rounds" not in {one.code for one in problems_of(read(Operator()).facts)}
    spoil(PeriodicTask.objects.filter(name="fairshift: rescue runs of lost workers"))
    [found] = [one for one in check_deployed_database() if one.id == "fairshift.W116"]
    assert "fairshift: rescue runs of lost workers" in found.msg
    [problem] = [one for one in problems_of(read(Operator()).facts) if one.code == "missing_rounds"]
    assert "fairshift: rescue runs of lost workers" in problem.text


def test_a_dump_is_loaded_after_a_flush(db: None, tmp_path: Path) -> None:
    """Although the flush has made the same PeriodicTasks with other ids."""
    dump = tmp_path / "dump.json"
    call_command("dumpdata", "django_celery_beat", output=str(dump))
    rows = {row["pk"] for row in json.loads(dump.read_text()) if "headers" in row["fields"]}
    before = ours()
    flushed()
    assert {*PeriodicTask.objects.values_list("pk", flat=True)} != rows
    call_command("loaddata", str(dump), verbosity=0)
    assert ours() == before
    assert {*PeriodicTask.objects.values_list("pk", flat=True)} == rows


def test_a_job_in_seconds_that_was_loaded_gets_its_own(
    acme: Owner, committed: None, tmp_path: Path
) -> None:
    """Within 5 s, by the round `settle`; until then, and from 30 s on, a check names it."""
    job = stored_job(acme, "often", schedule="seconds", interval_seconds=7)
    settle()
    name = f"fairshift job {job.pk}"
    assert name in ours()
    dump = tmp_path / "dump.json"
    call_command("dumpdata", "jobs.job", output=str(dump))
    PeriodicTask.objects.filter(name=name).delete()
    Job.objects.all().delete()
    call_command("loaddata", str(dump), verbosity=0)
    sql.query(
        "SET session_replication_role = replica;"
        "UPDATE jobs_job SET changed_at = now() - interval '1 minute';"
        "SET session_replication_role = origin"
    )
    make_partitions(days_ahead=7)
    try:
        assert name not in ours()
        [found] = [one for one in check_deployed_database() if one.id == "fairshift.W117"]
        assert "1 job with an interval in seconds has no PeriodicTask" in found.msg
        settle()
        assert name in ours()
        assert "fairshift.W117" not in {one.id for one in check_deployed_database()}
    finally:
        PeriodicTask.objects.filter(name=name).delete()
