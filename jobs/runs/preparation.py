"""Prepare a submit: check what the caller gave, field by field, and fill in the defaults."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from datetime import UTC, timedelta
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final
from uuid import UUID

from celery import Task, current_app

from jobs.calendars import gate
from jobs.calendars.gate import GateInput, calendars_of
from jobs.calendars.targets import targets_of
from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.error_names import refuse_unknown_errors
from jobs.catalog.policies import checked_policy, refuse_unknown
from jobs.catalog.registry import REPLACED, offer_of
from jobs.core.conf import how_to_set, plain_queues, setting
from jobs.core.errors import ArgumentError, BatchError, FairshiftError, OptionError, UnknownOwner
from jobs.core.inputs import refuse_name
from jobs.core.sql import now
from jobs.core.tracing import trace_headers
from jobs.models import Owner, Target
from jobs.models.fields import OWNER_LIMIT
from jobs.runs.options import NAMES, POLICY_OPTIONS, Options, refuse_far
from jobs.runs.storage import RunDefaults, RunPlan, needed_of
from jobs.windows import Gate

DEFAULT_PRIORITY: Final = 5
BATCH_LIMIT: Final = 100_000
LABEL_LIMIT: Final = 200
_NO_OPTIONS: Final = Options()


def split_options(
    task: Task, given: Mapping[str, Any], arguments: Mapping[str, Any] | None
) -> tuple[Options, Mapping[str, Any]]:
    """Split the keywords of a submit into options and arguments."""
    if arguments is not None:
        return checked_options(given), _mapping(arguments)
    schema = ArgumentSchema.of(task)
    taken = schema.names
    for name in given:
        if name in NAMES and name in taken:
            raise OptionError(
                name, f"is also an argument of {task.name}; pass its arguments as arguments={{...}}"
            )
    chosen = {name: value for name, value in given.items() if name in NAMES}
    keywords = {name: value for name, value in given.items() if name not in NAMES}
    if not schema.takes_any:
        for name in keywords.keys() - set(taken):
            _refuse_near_option(name, taken)
    return checked_options(chosen), keywords


def _mapping(arguments: Any) -> Mapping[str, Any]:
    if not isinstance(arguments, Mapping):
        raise ArgumentError("arguments", "is a mapping of argument names to values")
    return arguments


def _refuse_near_option(name: str, arguments: Collection[str]) -> None:
    """Raise OptionError for an unknown name that is probably a misspelt option."""
    refuse_replaced(name)
    near = get_close_matches(name, {*NAMES, *arguments}, n=1)
    if near and near[0] not in arguments:
        raise OptionError(name, f"is unknown; did you mean {near[0]}?")


def refuse_replaced(name: str) -> None:
    """Raise OptionError for an option of Celery's that has another name here."""
    if (ours := REPLACED.get(name)) is not None:
        raise OptionError(name, f"is Celery's and unknown here; use {ours}")


def checked_options(given: Mapping[str, Any]) -> Options:
    """Return checked options; raise OptionError for an unknown one, with the nearest name."""
    if not given:
        return _NO_OPTIONS
    for name in given:
        refuse_replaced(name)
    refuse_unknown(given, known=NAMES)
    chosen = Options(**given)
    refuse_unknown_errors(chosen.policy)
    return chosen


def encode_payload(
    task: Task, args: Sequence[Any], kwargs: Mapping[str, Any], *, embed: Mapping[str, Any]
) -> bytes:
    """Return the payload of one call, checked against the task's signature."""
    most: int = setting("PAYLOAD_MAX_BYTES")
    return ArgumentSchema.of(task).body(args, kwargs, embed, max_bytes=most)


def encode_payloads(
    task: Task, calls: Sequence[Mapping[str, Any]], *, embed: Mapping[str, Any]
) -> list[bytes]:
    """Return the payload of each call; raise BatchError with every call that is wrong."""
    schema, most = ArgumentSchema.of(task), setting("PAYLOAD_MAX_BYTES")
    done: list[bytes] = []
    problems: list[tuple[int, FairshiftError]] = []
    for index, call in enumerate(calls):
        try:
            done.append(schema.body((), _mapping(call), embed, max_bytes=most))
        except FairshiftError as error:
            problems.append((index, error))
    if problems:
        raise BatchError(problems, len(calls))
    return done


def refuse_size(calls: Sequence[Any], label: str) -> None:
    """Raise OptionError for a bulk that is empty or too large, and for a bad label."""
    if not 1 <= len(calls) <= BATCH_LIMIT:
        raise OptionError(
            "arguments", f"holds 1 to {BATCH_LIMIT:,} elements; these are {len(calls):,}"
        )
    refuse_name("label", label, most=LABEL_LIMIT)


def as_list(option: str, given: Any, *, elements: str) -> list[Any]:
    """Return an iterable as a list; raise OptionError for a text or mapping, or too many elements.

    Reads at most BATCH_LIMIT + 1 elements: an iterator may be endless.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise OptionError(option, f"is a list of {elements}, not {type(given).__name__}")
    if isinstance(given, Sized):
        return list(given)
    read = list(islice(given, BATCH_LIMIT + 1))
    if len(read) > BATCH_LIMIT:
        raise OptionError(option, f"holds at most {BATCH_LIMIT:,} elements; these are more")
    return read


def as_owner(given: Owner | str) -> Owner:
    """Return the given instance, or load the owner with this slug."""
    return given if isinstance(given, Owner) else load_owner(given)


def load_owner(given: Owner | str) -> Owner:
    """Load an owner by its slug, or reload the given one; raise UnknownOwner if there is none."""
    if not isinstance(given, Owner | str):
        raise OptionError("owner", f"is an Owner or its name, not {given!r:.80}")
    found: Owner | None = None
    if isinstance(given, Owner):
        # An instance that was read earlier may lack a new calendar's version.
        found = Owner.objects.filter(pk=given.pk).first()
    elif named_by(given) is not None:
        found = Owner.objects.filter(slug=given).first()
    if found is None:
        raise UnknownOwner(str(given)[:OWNER_LIMIT])
    return found


def named_by(given: Any) -> dict[str, Any] | None:
    """Return the id or the slug of an owner, as statements take it; None for what names none."""
    if isinstance(given, Owner):
        return {"owner_id": given.pk, "slug": None}
    # A slug is ASCII; PostgreSQL refuses NUL and lone surrogates also in queries.
    if isinstance(given, str) and given.isascii() and "\x00" not in given:
        return {"owner_id": None, "slug": given}
    return None


def lock_key(owner: Owner, lock: str) -> str:
    """Return a lock key in its owner's scope, as insert_due_runs.sql does."""
    return f"{owner.slug}:{lock}" if lock else ""


def make_targets(owner: Owner, names: Sequence[str]) -> dict[str, int]:
    """Return the ids of an owner's targets by name; create the missing ones."""
    found = targets_of((owner.pk, name) for name in names if name)
    return {name: target_id for (_, name), target_id in found.items()}


def queue_names() -> set[str]:
    """Return the queues of durable runs that the Celery app has."""
    return set(current_app.amqp.queues) - plain_queues()


def queue_name(chosen: Options) -> str:
    """Return the queue of a submit; raise OptionError for one that the Celery app does not have."""
    name = chosen.queue or setting("JOBS_QUEUE")
    known = queue_names()
    if name in known:
        return name
    if not current_app.set_as_current and current_app.main == "default":
        raise OptionError(
            "queue",
            "is not known: this process has Celery's default app, not the project's; write"
            " `app = celery_app(...)`, or an import of your app, into the __init__.py beside"
            " settings.py (docs/start/own-project.md)",
        )
    listed = ", ".join(sorted(known)) or "none"
    if chosen.queue:
        raise OptionError("queue", f"is one of: {listed}")
    raise OptionError(
        "queue",
        f"defaults to {name!r}, and this Celery app has only: {listed}; add it to "
        f"CELERY_TASK_QUEUES, or name another in {how_to_set('JOBS_QUEUE')}",
    )


def message_options(chosen: Options) -> dict[str, Any]:
    """Return headers of Celery and of the trace."""
    # Without `ignore_result`, `celery_outcomes` skips the run.
    if chosen.ignore_result and chosen.link_error is None:
        return trace_headers()
    return {"ignore_result": chosen.ignore_result, **trace_headers()}


def with_task_policy(task: Task, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return policies: as given, else the task's, else the setting's; raise OptionError."""
    offered = offer_of(task).policy
    declared = {name: offered[name] for name in POLICY_OPTIONS & set(offered)}
    # Checked again: a soft limit of one source may exceed the hard limit of another.
    return {"max_attempts": setting("MAX_ATTEMPTS"), **checked_policy({**declared, **given})}


def priority_of(task: Task, given: int | None) -> int:
    """Return the given priority, else the task's, else the default."""
    declared: int = offer_of(task).policy.get("priority", DEFAULT_PRIORITY)
    return declared if given is None else given


def run_plan(task: Task, chosen: Options) -> RunPlan:
    """Return what a submit says of its runs: option, else the task's policy, else setting."""
    policy = with_task_policy(task, chosen.policy)
    return RunPlan(
        task=task.name,
        queue=queue_name(chosen),
        priority=priority_of(task, chosen.priority),
        max_attempts=policy.pop("max_attempts"),
        policy=policy,
        window_policy=chosen.window,
    )


def deadline_seconds_of(task: Task, chosen: Options) -> float | None:
    """Return the seconds from the due time to the deadline, given or else the task's."""
    return chosen.deadline_seconds or offer_of(task).policy.get("deadline_seconds")


def run_defaults(
    task: Task,
    owner: Owner,
    chosen: Options,
    *,
    submission_id: int | None = None,
    job_id: int | None = None,
) -> RunDefaults:
    """Return what all runs of a submit share, from this moment on."""
    created_at = now()
    # PostgreSQL refuses offsets of 16 hours and more.
    due_at = chosen.eta and chosen.eta.astimezone(UTC)
    if chosen.countdown:
        due_at = created_at + timedelta(seconds=chosen.countdown)
    if due_at is not None:
        refuse_far(due_at, now=created_at)
    deadline = deadline_seconds_of(task, chosen)
    plan = run_plan(task, chosen)
    return RunDefaults(
        **{name: getattr(plan, name) for name in RunPlan.__dataclass_fields__},
        owner_id=owner.pk,
        owner=owner.slug,
        job_id=job_id,
        submission_id=submission_id,
        created_at=created_at,
        due_at=due_at,
        deadline_at=(due_at or created_at) + timedelta(seconds=deadline) if deadline else None,
    )


def run_gates(
    owner: Owner, defaults: RunDefaults, target_ids: Sequence[int | None], ids: Sequence[UUID]
) -> list[Gate | None]:
    """Return each run's gate, None without calendars; raise OptionError if it needs a window."""
    if owner.calendar_version == 0 and not defaults.window_policy:
        return [None] * len(ids)
    needed = needed_of(defaults.policy)
    calendars = calendars_of(owner.pk, job_id=defaults.job_id, target_ids=set(target_ids))
    applying = {
        one: GateInput(ids, needed, defaults.window_policy) for one, ids in calendars.items()
    }
    if defaults.window_policy:
        _refuse_without_calendar(applying)
    asked = [applying[one] for one in target_ids]
    return list(gate.gates(asked, now=defaults.created_at, ids=ids))


def _refuse_without_calendar(applying: Mapping[int | None, GateInput]) -> None:
    without = [one for one, found in applying.items() if not found.calendars]
    if not without:
        return
    ids = [one for one in without if one is not None]
    name = Target.objects.filter(id__in=ids).values_list("name", flat=True).first()
    whose = f"target {name!r}" if name else "a run without a target"
    more = f", and to {len(without) - 1:,} more" if len(without) > 1 else ""
    raise OptionError("window", f"is required, and no calendar applies to {whose}{more}")
