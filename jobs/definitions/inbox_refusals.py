"""The results of messages to the inbox, for callers, and the audit of refusals, for operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from celery import current_app
from celery.exceptions import TaskError
from celery.states import FAILURE, SUCCESS
from django_celery_results.models import TaskResult

from fleet import Call
from jobs.core.errors import BatchError, OptionError
from jobs.definitions.spec import fault_of
from jobs.models import AuditEntry, Owner

SHOWN: Final = 20
TEXT_LIMIT: Final = 300


@dataclass(frozen=True, slots=True)
class Refused:
    call: Call
    slug: str
    error: Exception


def audit_refused(refused: Sequence[Refused]) -> None:
    """Add an audit entry for each owner with refused calls, with the first problems."""
    by_owner: dict[str, list[Refused]] = defaultdict(list)
    for one in refused:
        by_owner[one.slug].append(one)
    owners = {owner.slug: owner for owner in Owner.objects.filter(slug__in=by_owner)}
    entries = []
    for slug, those in by_owner.items():
        owner = owners.get(slug)
        entries.append(
            AuditEntry(
                actor_name="",
                action="refuse jobs",
                object_type="owner" if owner else "message",
                object_id=str(owner.pk) if owner else shown(those[0].call.id)[:64],
                owner=owner,
                reason=shown(str(those[0].error)),
                details={
                    "messages": len(those),
                    "first": [
                        {
                            "id": shown(one.call.id),
                            "task": shown(one.call.task),
                            "owner": shown(one.slug),
                            "problems": _problems(one.error),
                        }
                        for one in those[:SHOWN]
                    ],
                },
            )
        )
    AuditEntry.objects.bulk_create(entries)


def _problems(error: Exception) -> list[list[Any]]:
    """Return the problems of a call, each with the index of its element and the field."""
    if isinstance(error, BatchError):
        some = error.problems[:SHOWN]
        return [[index, *map(shown, fault_of(fault))] for index, fault in some]
    field, problem = fault_of(error) if isinstance(error, OptionError) else ("", str(error))
    return [[None, shown(field), shown(problem)]]


def shown(text: str) -> str:
    """Return foreign text as any column can store it: short and printable."""
    return "".join(each if each.isprintable() else "�" for each in text[:TEXT_LIMIT])


def keep_results(calls: Sequence[Call], refused: Sequence[Refused]) -> None:
    """Store the results of the calls that asked for one: None, or why it was refused."""
    errors = {id(one.call): one.error for one in refused}
    rows = [_result(call, errors.get(id(call))) for call in calls if call.wants_result and call.id]
    # One statement takes each id once: of several results the last counts.
    TaskResult.objects.bulk_create(
        {row.task_id: row for row in rows}.values(),
        update_conflicts=True,
        unique_fields=["task_id"],
        update_fields=["status", "content_type", "content_encoding", "result", "date_done"],
    )


def _result(call: Call, error: Exception | None) -> TaskResult:
    backend = current_app.backend
    value = None if error is None else backend.prepare_exception(TaskError(shown(str(error))))
    content_type, encoding, content = backend.encode_content(value)
    return TaskResult(
        task_id=shown(call.id),
        task_name=shown(call.task),
        status=SUCCESS if error is None else FAILURE,
        content_type=content_type,
        content_encoding=encoding,
        result=content,
    )
