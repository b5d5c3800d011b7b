"""The errors that callers of Fairshift see: one class for each different reaction.

The arguments are the facts, `__str__` makes the text: so Celery can pickle them.
"""

from __future__ import annotations

from fleet import counted


class FairshiftError(Exception):
    """Base of all errors raised by Fairshift."""


class FieldError(FairshiftError):
    """Base of errors about one `field`."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field = field
        self.problem = problem


class ArgumentError(FieldError):
    """An argument of a task is wrong; `field` is its dotted path, as `rules.0.port`."""

    def __str__(self) -> str:
        return f"argument {self.field}: {self.problem}"


class UnknownTask(FairshiftError):
    """No registered task that may be submitted has this name, or is this object."""

    def __init__(self, name: str, near_miss: str | None = None, is_name: bool = True) -> None:
        super().__init__(name, near_miss, is_name)
        self.name = name
        self.near_miss = near_miss
        self.is_name = is_name

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

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"task {self.name!r} runs only with a row: use submit(), or declare it with "
            "@job(plain=True); nothing was sent"
        )


class PayloadTooLarge(FairshiftError):
    """The arguments take more bytes than a payload may; `size` is a lower bound."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit)
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        return (
            f"the arguments take at least {self.size:,} bytes, the limit is {self.limit:,}; "
            "store what is large and pass its address or id"
        )


class OptionError(FairshiftError):
    """An option beside the arguments, such as `priority`, is unknown or out of its limits."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(option, problem)
        self.option = option
        self.problem = problem

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

    def __init__(self, calendar: str, problem: str) -> None:
        super().__init__(calendar, problem)
        self.calendar = calendar
        self.problem = problem

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

    def __init__(self, slug: str) -> None:
        super().__init__(slug)
        self.slug = slug

    def __str__(self) -> str:
        return f"there is no owner {self.slug!r}; create it in the admin first"


class AccessDenied(FairshiftError):
    """The user or the API token lacks a scope that this needs, for this owner."""

    def __init__(self, scope: str, owner: str) -> None:
        super().__init__(scope, owner)
        self.scope = scope
        self.owner = owner

    def __str__(self) -> str:
        return f"this needs the scope {self.scope!r} for {self.owner}"


class PermissionMissing(FairshiftError):
    """The user, or the maker of the API token, lacks one of Django's permissions."""

    def __init__(self, permission: str, *, is_token: bool = False) -> None:
        super().__init__(permission, is_token)
        self.permission = permission
        self.is_token = is_token

    def __str__(self) -> str:
        whose = " of the token's maker" if self.is_token else ""
        return f"this needs the permission {self.permission}{whose}"


class NotFound(FairshiftError):
    """The caller sees no row with this key: there is none, or it belongs to another owner."""

    def __init__(self, noun: str) -> None:
        super().__init__(noun)
        self.noun = noun

    def __str__(self) -> str:
        return f"there is no such {self.noun}"


class StaleRow(FairshiftError):
    """The row has changed since the caller read it; nothing was changed."""

    def __init__(self, noun: str) -> None:
        super().__init__(noun)
        self.noun = noun

    def __str__(self) -> str:
        return f"this {self.noun} has changed since you read it; read it again"


class ActionRefused(FairshiftError):
    """The action does not apply to the row in its present state; `code` is for programs."""

    def __init__(self, problem: str, code: str) -> None:
        super().__init__(problem, code)
        self.problem = problem
        self.code = code

    def __str__(self) -> str:
        return self.problem


class LastAdmin(FairshiftError):
    """A member is the last admin of its owner, and stays until there is another one."""

    def __init__(self, user: str, owner: str) -> None:
        super().__init__(user, owner)
        self.user = user
        self.owner = owner

    def __str__(self) -> str:
        return f"{self.user} is the last admin of {self.owner}; add another admin first"


class LimitExceeded(FairshiftError):
    """A caller or an owner has reached a limit for now; nothing was stored."""

    def __init__(self, name: str, problem: str, limit: float, retry_after_seconds: int) -> None:
        super().__init__(name, problem, limit, retry_after_seconds)
        self.name = name
        self.problem = problem
        self.limit = limit
        self.retry_after_seconds = retry_after_seconds

    def __str__(self) -> str:
        return f"{self.problem}; try again in {self.retry_after_seconds} s"


class IdempotencyConflict(FairshiftError):
    """The owner has used this idempotency key for another submit."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return (
            f"idempotency key {self.key!r} was used with another task or other arguments; "
            "use a new key for a new submit"
        )


class ResultError(FairshiftError):
    """A task's result cannot be stored: it is no JSON, or too large."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"the task's result cannot be kept: {self.problem}"


class CheckpointError(FairshiftError):
    """A task's checkpoint cannot be stored or read: too large, no JSON, or no answer; see why."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"the checkpoint cannot be kept: {self.problem}"


class StaleAttempt(FairshiftError):
    """This attempt may write nothing: another one has the run now, or the run has ended."""

    def __init__(self, run_id: str, token: int) -> None:
        super().__init__(run_id, token)
        self.run_id = run_id
        self.token = token

    def __str__(self) -> str:
        return (
            f"run {self.run_id} has ended, or a later attempt than that of token {self.token} has"
            " it; nothing was written, and this attempt's outcome will not count"
        )


class StateConflict(FairshiftError):
    """The run's state does not allow what was asked."""

    def __init__(self, run_id: str, state: str, wanted: str) -> None:
        super().__init__(run_id, state, wanted)
        self.run_id = run_id
        self.state = state
        self.wanted = wanted

    def __str__(self) -> str:
        return f"run {self.run_id} is {self.state} and cannot be {self.wanted}"


class BatchError(FairshiftError):
    """Elements of a bulk are wrong; nothing was stored. `problems` has each index and error."""

    def __init__(self, problems: list[tuple[int, FairshiftError]], size: int) -> None:
        super().__init__(problems, size)
        self.problems = problems
        self.size = size

    def __str__(self) -> str:
        shown = _first_five([f"element {index}: {error}" for index, error in self.problems])
        wrong = len({index for index, _ in self.problems})
        verb = "is" if wrong == 1 else "are"
        return f"{wrong:,} of {counted(self.size, 'element')} {verb} wrong: {shown}"


def _first_five(problems: list[str]) -> str:
    more = [f"and {len(problems) - 5} more"] if len(problems) > 5 else []
    return "; ".join(problems[:5] + more)
