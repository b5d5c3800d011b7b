"""The verdict of the overview: healthy, or what is wrong, the worst first. Pure.

Each rule looks at causes of one kind, and says what to do about them. Their order is that of the
verdict: a cause stands before its effects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.core.language import count_in_words, number
from jobs.models import Job, Rollout, RolloutState
from jobs.system.pinning import Pin
from jobs.system.rollups.reads import LATE
from jobs.system.state import NAMED
from jobs.system.verdict.facts import Facts, Problem
from jobs.system.verdict.owner_rules import objective, starved

UNPUBLISHED: Final = timedelta(seconds=60)

Rule = Callable[[Facts], Iterator[Problem]]


def problems_of(facts: Facts) -> list[Problem]:
    """Return what is wrong, the worst first: nothing if all is well."""
    return list(_problems(facts))


def _problems(facts: Facts) -> Iterator[Problem]:
    found = [problem for rule in RULES for problem in rule(facts)]
    yield from (problem for problem in found if problem.is_bad)
    yield from (problem for problem in found if not problem.is_bad)


def _servers(facts: Facts) -> Iterator[Problem]:
    """Redis, beat and workers that are not there."""
    if facts.is_redis_away:
        yield _redis(facts)
    if facts.system.is_silent and not facts.system.is_beat_leading:
        yield Problem(
            code="beat",
            text=_("Beat is silent: jobs are not triggered, and no run is retried."),
            todo=_("Start a celery beat. Each job then follows its policy for missed due times."),
        )
    names = facts.system.without_redis
    if names and not facts.is_redis_away:
        serves_all = facts.system.worker_count and facts.system_queue in facts.system.queues
        yield Problem(
            code="without_redis",
            text=ngettext(
                "%(count)s worker cannot use Redis, and takes no runs%(names)s.",
                "%(count)s workers cannot use Redis, and take no runs%(names)s.",
                len(names),
            )
            % {"count": number(len(names)), "names": _in_brackets(names)},
            todo=_(
                "Its log says why: most often a password or a way to Redis that has changed, or a"
                " Redis that is full. Mend that, and restart the worker if it does not come back."
            ),
            is_bad=not serves_all or bool(facts.unserved),
            query={"state": "idle"},
        )
    if not (facts.system.worker_count or names):
        yield Problem(
            code="no_worker",
            text=_("No worker is alive: nothing runs."),
            todo=_("Start a celery worker for the jobs' queue and one for %(queue)s.")
            % {"queue": facts.system_queue},
        )
    if facts.system.worker_count and facts.system_queue not in facts.system.queues:
        yield Problem(
            code="system_worker",
            text=_(
                "No worker takes from queue %(queue)s: jobs are not triggered, no run is retried."
            )
            % {"queue": facts.system_queue},
            todo=_("Start a celery worker for this queue."),
            query={"queue": facts.system_queue},
        )


def _redis(facts: Facts) -> Problem:
    if facts.refuses_password:
        return Problem(
            code="redis_password",
            text=_("Redis refuses the password: runs are not published."),
            todo=_(
                "Put the new one into CELERY_BROKER_URL (REDIS_URL in Fairshift's own project), and"
                " restart web processes, workers and beat. No run is lost."
            ),
            page="runs",
            query={"state": "queued"},
        )
    return Problem(
        code="redis",
        text=_("Redis does not answer: no worker gets a run."),
        todo=_("Start it, or mend the way to it. No run is lost: they are published again."),
        page="runs",
        query={"state": "queued"},
    )


def _in_brackets(names: Sequence[str]) -> str:
    """Return the first names; empty if the visitor may not see them."""
    shown = ", ".join(filter(None, names[:NAMED]))
    more = ", …" if len(names) > NAMED else ""
    return f" ({shown}{more})" if shown else ""


def _queues(facts: Facts) -> Iterator[Problem]:
    """Queues that no worker takes from."""
    if facts.unserved and facts.system.worker_count:
        yield Problem(
            code="unserved",
            text=_("Work waits in queue %(queue)s, and no worker takes from it.")
            % {"queue": ", ".join(facts.unserved)},
            todo=_("Start a celery worker for it."),
            query={"queue": facts.unserved[0]},
        )
    if facts.unsent and facts.system.worker_count:
        yield Problem(
            code="unsent",
            text=_("Webhooks and mails wait: no worker takes from queue %(queue)s.")
            % {"queue": facts.unsent},
            todo=_("Start a celery worker for it."),
            query={"queue": facts.unsent},
        )


def _rounds(facts: Facts) -> Iterator[Problem]:
    """Rounds of the system's worker that are missing, and what is off."""
    if facts.system.missing_rounds:
        yield Problem(
            code="missing_rounds",
            text=_("Beat does not send %(names)s: no such PeriodicTask exists.")
            % {"names": ", ".join(facts.system.missing_rounds)},
            todo=_(
                "A running celery beat makes it within a minute, and so does manage.py migrate."
            ),
        )
    if facts.stopped:
        yield Problem(
            code="stopped",
            text=_("Webhooks or mails are off, as their makers may not see runs now: %(names)s.")
            % {"names": ", ".join(facts.stopped)},
            todo=_("Make them active again, as an admin who may see these runs."),
            page="webhooks",
        )
    state = facts.system
    if state.is_silent and state.is_beat_leading and facts.system_queue in state.queues:
        yield Problem(
            code="pulse",
            text=_(
                "Beat and the system's worker are alive, but the pulse is missing: jobs are late."
            ),
            todo=_("The worker of %(queue)s may be busy: look at its log.")
            % {"queue": facts.system_queue},
            query={"queue": facts.system_queue},
        )


def _late(facts: Facts) -> Iterator[Problem]:
    """Jobs and runs that wait although they are due."""
    if facts.late_count:
        yield Problem(
            code="late",
            text=ngettext(
                "%(count)s job was due more than a minute ago and has not been triggered.",
                "%(count)s jobs were due more than a minute ago and have not been triggered.",
                facts.late_count,
            )
            % {"count": number(facts.late_count)},
            todo=_("Workers of %(queue)s are too few or too slow.") % {"queue": facts.system_queue},
            page="jobs",
            query={"health": "late"},
        )
    since = facts.system.unpublished_since
    if since is not None and facts.system.at - since >= UNPUBLISHED:
        yield Problem(
            code="unpublished",
            text=_("Runs have waited for more than a minute to be published to Redis."),
            todo=_("The sweep publishes them: is Redis full, or the system's worker busy?"),
            page="runs",
            query={"state": "queued"},
        )
    if facts.unknown_task is not None:
        task, queue = facts.unknown_task
        yield Problem(
            code="unknown_task",
            text=_("No worker of queue %(queue)s knows task %(task)s, and runs of it wait.")
            % {"task": task, "queue": queue},
            todo=_("Start workers with the code that has it, or move the runs to another task."),
            page="runs",
            query={"task": task, "state": "queued"},
        )


def _jobs(facts: Facts) -> Iterator[Problem]:
    """Jobs that fail, or are never due."""
    if facts.failing:
        job, more = facts.failing[0], len(facts.failing) - 1
        text = _("Job %(job)s of %(owner)s has failed for an hour or longer.")
        if more:
            text = ngettext(
                "Job %(job)s of %(owner)s and %(more)s other have failed for an hour or longer.",
                "Job %(job)s of %(owner)s and %(more)s others have failed for an hour or longer.",
                more,
            )
        yield Problem(
            code="failing",
            text=text % {"job": job.key, "owner": job.owner.slug, "more": more},
            todo=_("Look at the errors of its last runs."),
            **({"page": "jobs", "query": {"health": "failing"}} if more else _page_of(job)),
        )
    if facts.broken_count:
        yield Problem(
            code="broken",
            text=ngettext(
                "%(count)s job has a schedule that cannot be followed.",
                "%(count)s jobs have a schedule that cannot be followed.",
                facts.broken_count,
            )
            % {"count": number(facts.broken_count)},
            todo=_("Correct the schedule."),
            page="jobs",
            query={"health": "broken"},
        )


def _page_of(job: Job) -> dict[str, Any]:
    return {"page": "job", "key": job.pk}


def _decisions(facts: Facts) -> Iterator[Problem]:
    """Windows and rollouts that wait for an operator."""
    if facts.awaited is not None:
        window, runs = facts.awaited
        yield Problem(
            code="approval",
            text=ngettext(
                "A window of calendar %(calendar)s is not approved, and %(count)s run waits.",
                "A window of calendar %(calendar)s is not approved, and %(count)s runs wait.",
                runs,
            )
            % {"calendar": window.calendar.name, "count": count_in_words(runs)},
            todo=_("Approve it, or reject it."),
            is_bad=False,
            page="window",
            key=window.pk,
        )
    if stopped := [one for one in facts.rollouts if one.state == RolloutState.STOPPED]:
        text = _("The rollout of submission %(name)s is stopped: too many runs of a wave failed.")
        if len(stopped) > 1:
            text = _("%(count)s rollouts are stopped, the longest that of submission %(name)s.")
        todo = _("Retry the failed runs and resume it, or cancel the rest.")
        yield _of_rollouts(stopped, code="rollout_stopped", text=text, todo=todo)
    if waiting := [one for one in facts.rollouts if one.state == RolloutState.WAITING]:
        text = _("The rollout of submission %(name)s waits: wave %(next)s needs an approval.")
        if len(waiting) > 1:
            text = _(
                "%(count)s rollouts need an approval, the longest that of submission %(name)s."
            )
        todo = _("Approve the wave, or cancel the rest.")
        yield _of_rollouts(waiting, code="rollout_waits", text=text, todo=todo)


def _of_rollouts(found: Sequence[Rollout], *, code: str, text: str, todo: str) -> Problem:
    first = found[0]
    facts = {"name": first.submission, "next": first.wave + 1, "count": count_in_words(len(found))}
    return Problem(
        code=code,
        text=text % facts,
        todo=todo,
        is_bad=False,
        page="submission",
        key=first.pk,
    )


def _other_queues(facts: Facts) -> Iterator[Problem]:
    """Queues that another project's workers may take from."""
    if facts.unserved_stock and facts.system.worker_count:
        yield Problem(
            code="unserved_stock",
            text=_("Messages wait in queue %(queue)s, and no worker of Fairshift takes from it.")
            % {"queue": ", ".join(facts.unserved_stock)},
            todo=_("Start a celery worker for it, unless another project's workers take from it."),
            is_bad=False,
            query={"queue": facts.unserved_stock[0]},
        )
    if facts.undeclared and facts.system.worker_count:
        yield Problem(
            code="undeclared",
            text=_(
                "Tasks are routed to queue %(queue)s, which no setting declares, and no worker of"
                " Fairshift takes from it."
            )
            % {"queue": ", ".join(facts.undeclared)},
            todo=_("Add it to CELERY_TASK_QUEUES and start a worker for it, or correct the route."),
            is_bad=False,
            page="",
        )


def _database(facts: Facts) -> Iterator[Problem]:
    """Statistics that are behind, and what pins dead rows."""
    if facts.system.statistics_lag > LATE:
        yield Problem(
            code="statistics",
            text=_(
                "The statistics are %(minutes)s min behind: what failed in the last hour is not"
                " known."
            )
            % {"minutes": number(facts.system.statistics_lag // timedelta(minutes=1))},
            todo=_("The worker of %(queue)s counts each minute: look for roll_up in its log.")
            % {"queue": facts.system_queue},
            is_bad=False,
            query={"queue": facts.system_queue},
        )
    if pin := facts.system.pins.get("transaction"):
        yield Problem(
            code="old_transaction",
            text=_(
                "A transaction of PostgreSQL is %(age)s old: dead rows stay, and tables grow. It is"
                " that of process %(pid)s (application %(application)s, user %(user)s)."
            )
            % {
                "age": _age(pin),
                "pid": pin.pid,
                "application": pin.name or "–",
                "user": pin.username or "–",
            },
            todo=_("If it is not needed: SELECT pg_terminate_backend(%(pid)s).") % {"pid": pin.pid},
            is_bad=False,
            page="",
        )
    if pin := facts.system.pins.get("prepared"):
        yield Problem(
            code="prepared_transaction",
            text=_(
                "The prepared transaction %(name)s of user %(user)s is %(age)s old: dead rows stay,"
                " and tables grow."
            )
            % {"name": repr(pin.name), "user": pin.username, "age": _age(pin)},
            todo=_("End it with COMMIT PREPARED or ROLLBACK PREPARED."),
            is_bad=False,
            page="",
        )
    if pin := facts.system.pins.get("slot"):
        yield Problem(
            code="replication_slot",
            text=_(
                "Replication slot %(name)s is behind: PostgreSQL keeps %(size)s GiB of WAL for it,"
                " and dead rows of the last %(count)s transactions."
            )
            % {
                "name": repr(pin.name),
                "size": number((pin.bytes or 0) / 2**30, decimals=1),
                "count": number(pin.transactions),
            },
            todo=_(
                "Start what reads it; if nothing does: SELECT pg_drop_replication_slot(%(name)s)."
            )
            % {"name": repr(pin.name)},
            is_bad=False,
            page="",
        )


def _age(pin: Pin) -> str:
    if pin.seconds is None:
        return _("%(count)s transactions") % {"count": number(pin.transactions)}
    # Without seconds: the page is renewed when its text changes.
    return _("%d min") % (pin.seconds // 60)


def _machines(facts: Facts) -> Iterator[Problem]:
    """Workers and clocks that an operator may have to mend."""
    if facts.system.lost:
        yield Problem(
            code="lost_worker",
            text=_("Worker %(names)s was lost.") % {"names": ", ".join(facts.system.lost)},
            todo=_("Its runs were taken back. Start it again, or ignore this: it ends in an hour."),
            is_bad=False,
            query={"state": "lost"},
        )
    system = facts.system
    if system.is_clock_wrong:
        yield Problem(
            code="clock",
            text=_(
                "The clock of beat's machine %(host)s differs from PostgreSQL's by %(seconds)s s."
            )
            % {"host": system.beat_host, "seconds": f"{system.beat_ahead_seconds:+.0f}"},
            todo=_(
                "Synchronize it, for example with chrony. Due times are right; times in beat's log,"
                " and when calls of plain Celery tasks expire, are not."
            ),
            is_bad=False,
        )


RULES: Final[Sequence[Rule]] = (
    _servers,
    _queues,
    _rounds,
    _late,
    _jobs,
    _decisions,
    objective,
    starved,
    _other_queues,
    _database,
    _machines,
)
