"""The errors that callers of Fairshift see: one class for each different reaction.

Each class declares its facts, as a dataclass does, and `__str__` makes the text of them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from inspect import get_annotations
from typing import dataclass_transform

from fleet import counted


@dataclass_transform(eq_default=False)
class FairshiftError(Exception):
    """Base of all errors raised by Fairshift."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if get_annotations(cls):
            dataclass(eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        # In order, also of facts given by name: so Celery can pickle the error.
        self.args = tuple(getattr(self, fact.name) for fact in fields(self))  # type: ignore[arg-type]


class FieldError(FairshiftError):
    """Base of errors about one `field`."""

    field: str
    problem: str


class ArgumentError(FieldError):
    """An argument of a task is wrong; `field` is its dotted path, as `rules.0.port`."""

    def __str__(self) -> str:
        return f"argument {self.field}: {self.problem}"


class UnknownTask(FairshiftError):
    """No registered task that may be submitted has this name, or is this object."""

    name: str
    near_miss: str | None = None
    is_name: bool = True

    def __str__(self) -> str:
        if not self.is_name:
            return f"{self.name} is no Celery task; decorate its function with @job"
        hint = (
            f"; did you mean {self.near_miss!r}?"
            if self.near_miss
            else "; is its module imported: an app's tasks.py, or one that CELERY_IMPORTS names?"
        )
        return f"no task named {self.name!r} may be submitted{hint}"


class RowRequired(FairshiftError):
    """A task that runs only from a row was called as a plain one; nothing was sent."""

    name: str

    def __str__(self) -> str:
        return (
            f"task {self.name!r} runs only with a row: use submit(), or declare it with "
            "@job(plain=True); nothing was sent"
        )


class PayloadTooLarge(FairshiftError):
    """The arguments take more bytes than a payload may; `size` is a lower bound."""

    size: int
    limit: int

    def __str__(self) -> str:
        return (
            f"the arguments take at least {self.size:,} bytes, the limit is {self.limit:,}; "
            "store what is large and pass its address or id"
        )


class OptionError(FairshiftError):
    """An option beside the arguments, such as `priority`, is unknown or out of its limits."""

    option: str
    problem: str

    def __str__(self) -> str:
        return f"option {self.option}: {self.problem}"


class ScheduleError(FieldError):
    """A schedule is wrong; `field` is the job's field, as `cron`, or `schedule` for its kind."""

    def __str__(self) -> str:
        return f"schedule, {self.field}: {self.problem}"


class WindowError(FieldError):
    """A service window or freeze is wrong; `field` is the entry's field, as `rule`."""

    def __str__(self) -> str:
        return f"window, {self.field}: {self.problem}"


class ApprovalRefused(FairshiftError):
    """This person may not decide on this window, or the decision is impossible; see `problem`."""

    calendar: str
    problem: str

    def __str__(self) -> str:
        return f"calendar {self.calendar!r}: {self.problem}"


class IcalError(FairshiftError):
    """An iCalendar file is refused; nothing was imported.

    `problems` has, in order, the line (None: the whole file) and what is wrong there. `line` and
    `problem` are those of the first.
    """

    def __init__(self, line: int | None, problem: str, *more: tuple[int | None, str]) -> None:
        super().__init__(line, problem, *more)
        self.line = line
        self.problem = problem
        self.problems = ((line, problem), *more)

    def __str__(self) -> str:
        texts = [
            problem if line is None else f"line {line}: {problem}"
            for line, problem in self.problems
        ]
        return f"the iCalendar file is refused, nothing was imported: {_first_five(texts)}"


class UnknownOwner(FairshiftError):
    """No owner that the caller may use has this slug."""

    slug: str

    def __str__(self) -> str:
        return f"there is no owner {self.slug!r}; create it in the admin first"


class AccessDenied(FairshiftError):
    """The user or the API token lacks a scope that this needs, for this owner."""

    scope: str
    owner: str

    def __str__(self) -> str:
        return f"this needs the scope {self.scope!r} for {self.owner}"


class PermissionMissing(FairshiftError):
    """The user, or the maker of the API token, lacks one of Django's permissions."""

    permission: str
    is_token: bool = False

    def __str__(self) -> str:
        whose = " of the token's maker" if self.is_token else ""
        return f"this needs the permission {self.permission}{whose}"


class NotFound(FairshiftError):
    """The caller sees no row with this key: there is none, or it belongs to another owner."""

    noun: str

    def __str__(self) -> str:
        return f"there is no such {self.noun}"


class StaleRow(FairshiftError):
    """The row has changed since the caller read it; nothing was changed."""

    noun: str

    def __str__(self) -> str:
        return f"this {self.noun} has changed since you read it; read it again"


class ActionRefused(FairshiftError):
    """The action does not apply to the row in its present state; `code` is for programs."""

    problem: str
    code: str

    def __str__(self) -> str:
        return self.problem


class LastAdmin(FairshiftError):
    """A member is the last admin of its owner, and stays until there is another one."""

    user: str
    owner: str

    def __str__(self) -> str:
        return f"{self.user} is the last admin of {self.owner}; add another admin first"


class LimitExceeded(FairshiftError):
    """A caller or an owner has reached a limit for now; nothing was stored."""

    name: str
    problem: str
    limit: float
    retry_after_seconds: int

    def __str__(self) -> str:
        return f"{self.problem}; try again in {self.retry_after_seconds} s"


class IdempotencyConflict(FairshiftError):
    """The owner has used this idempotency key for another submit."""

    key: str

    def __str__(self) -> str:
        return (
            f"idempotency key {self.key!r} was used with another task or other arguments; "
            "use a new key for a new submit"
        )


class ResultError(FairshiftError):
    """A task's result cannot be stored: it is no JSON, or too large."""

    problem: str

    def __str__(self) -> str:
        return f"the task's result cannot be kept: {self.problem}"


class CheckpointError(FairshiftError):
    """A task's checkpoint cannot be stored or read: too large, no JSON, or no answer; see why."""

    problem: str

    def __str__(self) -> str:
        return f"the checkpoint cannot be kept: {self.problem}"


class StaleAttempt(FairshiftError):
    """This attempt may write nothing: another one has the run now, or the run has ended."""

    run_id: str
    token: int

    def __str__(self) -> str:
        return (
            f"run {self.run_id} has ended, or a later attempt than that of token {self.token} has"
            " it; nothing was written, and this attempt's outcome will not count"
        )


class StateConflict(FairshiftError):
    """The run's state does not allow what was asked."""

    run_id: str
    state: str
    wanted: str

    def __str__(self) -> str:
        return f"run {self.run_id} is {self.state} and cannot be {self.wanted}"


class BatchError(FairshiftError):
    """Elements of a bulk are wrong; nothing was stored. `problems` has each index and error."""

    problems: list[tuple[int, FairshiftError]]
    size: int

    def __str__(self) -> str:
        shown = _first_five([f"element {index}: {error}" for index, error in self.problems])
        wrong = len({index for index, _ in self.problems})
        verb = "is" if wrong == 1 else "are"
        return f"{wrong:,} of {counted(self.size, 'element')} {verb} wrong: {shown}"


def _first_five(problems: list[str]) -> str:
    more = [f"and {len(problems) - 5} more"] if len(problems) > 5 else []
    return "; ".join(problems[:5] + more)
