"""Upsert: jobs made and changed by the caller's keys, many in one request, all or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.http import HttpRequest
from pydantic import TypeAdapter, ValidationError

from jobs.actions import refuse_without_permission
from jobs.actions.owning import owner_named
from jobs.api.jobs.bodies import JobsToUpsert, JobToUpsert
from jobs.api.jobs.refusals import field_problem
from jobs.api.jobs.router import router
from jobs.api.jobs.schemas import Upserts
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.errors import detail_of
from jobs.api.kit.problems import ERRORS_LIMIT, Problem
from jobs.catalog.registry import is_offered
from jobs.core import barrier
from jobs.core.conf import setting
from jobs.core.errors import BatchError, UnknownTask
from jobs.definitions.spec import JobSpec
from jobs.definitions.upsert import checked, upsert_checked
from jobs.models import Job, Scope
from jobs.owners.caps import refuse_more_jobs

UPSERTS = needs(Scope.ADMIN, "jobs.change_job")
_ELEMENTS = TypeAdapter(list[JobToUpsert])


@router.post("/upsert", auth=UPSERTS, response=Upserts, operation_id="upsert_jobs")
def upsert_jobs(request: HttpRequest, body: JobsToUpsert) -> Upserts:
    """Make or change jobs by their keys: all, or none and every wrong element with its index.

    A field that is missing takes its default, also in a job that exists; a pause stays. A job that
    is so already is not written. Repeating a request changes nothing.
    """
    access = caller(request)
    most: int = setting("API_MAX_BATCH")
    if len(body.jobs) > most:
        detail = f"One request has {most:,} jobs at most."
        raise Problem(413, "batch_too_large", detail, field="jobs", limit=most)
    owner = owner_named(access, body.owner, Scope.ADMIN)
    refuse_without_permission(access, "jobs.add_job")
    with barrier.lifted():
        specs = _specs(body.jobs)
        keys = [spec.key for spec in specs]
        known = Job.objects.filter(owner_id=owner.pk, key__in=keys).count()
        if known < len(keys):
            refuse_more_jobs(owner.pk, adding=len(keys) - known)
        done = upsert_checked(owner, specs, actor=access.actor)
    return Upserts(created=done.created, updated=done.updated, unchanged=done.unchanged)


def _specs(elements: Sequence[Any]) -> list[JobSpec]:
    """Return the checked jobs; raise Problem with every wrong field of every element."""
    problems = list(_wrong_forms(elements))
    wrong = {problem["index"] for problem in problems}
    # The checks of values also run for a body with wrong forms: one answer has all faults.
    places = [index for index in range(len(elements)) if index not in wrong]
    problems += [
        {"index": index, **field_problem(UnknownTask(task), within=f"jobs.{index}.")}
        for index in places
        if not is_offered(task := elements[index]["task"])
    ]
    specs: list[JobSpec] = []
    try:
        specs = checked([elements[index] for index in places])
    except BatchError as error:
        reported = {(each["index"], each["field"]) for each in problems}
        for place, fault in error.problems:
            index = places[place]
            found = {"index": index, **field_problem(fault, within=f"jobs.{index}.")}
            if (index, found["field"]) not in reported:
                problems.append(found)
    if problems:
        raise _refused(problems, len(elements))
    return specs


def _wrong_forms(elements: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield a problem for each field of a wrong type or beyond its limits."""
    try:
        _ELEMENTS.validate_python(elements)
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_input=False):
            index, *steps = fault["loc"]
            field = ".".join(map(str, ("jobs", index, *steps)))
            shown = field.encode(errors="backslashreplace").decode()[:200]
            yield {"index": index, "field": shown, "detail": detail_of(fault)}


def _refused(problems: list[dict[str, Any]], size: int) -> Problem:
    problems.sort(key=lambda problem: problem["index"])
    wrong = len({problem["index"] for problem in problems})
    first = problems[0]
    return Problem(
        422,
        "invalid",
        f"{wrong:,} of {size:,} jobs are wrong; the first: {first['field']}: {first['detail']}",
        field=first["field"],
        errors=problems[:ERRORS_LIMIT],
    )
