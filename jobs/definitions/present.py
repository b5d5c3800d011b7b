"""A job that exists, as a caller would give it: what a change of some fields begins with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.redaction import hidden_arguments
from jobs.catalog.registry import resolve
from jobs.core.crypto import read_body
from jobs.definitions.fields import FIELDS
from jobs.definitions.spec import KINDS
from jobs.models import Job


def given_of(job: Job) -> dict[str, Any]:
    """Return the fields of a job as a caller sees them; the target is a name."""
    given = {name: getattr(job, name) for name in FIELDS if name != "target"}
    return {
        **given,
        "target": job.target.name if job.target else "",
        "arguments": shown_arguments_of(job),
    }


def patched(job: Job, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a job with changes; None stands for the default.

    A change of the schedule's kind, or of the field that a kind has, takes the place of what the
    schedule was.
    """
    given = given_of(job)
    named = {name for name in KINDS if changes.get(name) not in (None, "")}
    if named or changes.get("schedule") not in (None, job.schedule):
        given |= dict.fromkeys(("schedule", *KINDS))
    return {**given, **changes}


def shown_arguments_of(job: Job) -> dict[str, Any]:
    """Return a job's arguments by name as they may be shown."""
    return hidden_arguments(job.task, (), arguments_of(job))[1]


def arguments_of(job: Job) -> dict[str, Any]:
    """Return a job's arguments by name."""
    args, kwargs = read_body(job.payload, key=job.payload_key, place=job.place)
    if args:
        schema = ArgumentSchema.of(resolve(job.task))
        rest = args[len(schema.positional) :]
        kwargs = {**dict(zip(schema.positional, args, strict=False)), **kwargs}
        if rest and schema.rest:
            kwargs[schema.rest] = rest
    return kwargs
