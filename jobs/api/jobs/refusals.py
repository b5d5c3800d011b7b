"""Wrong jobs, as problems: every wrong field, and in a bulk of which element."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jobs.api.kit.errors import of_error
from jobs.api.kit.problems import Problem
from jobs.core.errors import BatchError, FairshiftError


@contextmanager
def of_one_job() -> Iterator[None]:
    """Raise Problem with the wrong fields of a single job, where a verb raises BatchError."""
    try:
        yield
    except BatchError as error:
        faults = [fault for _, fault in error.problems]
        first = of_error(faults[0])
        if len(faults) == 1 and first.status != 422:
            raise first from None
        errors = [field_problem(fault) for fault in faults]
        raise Problem(
            422,
            first.code,
            "; ".join(each["detail"] for each in errors[:5]),
            field=errors[0]["field"],
            errors=errors,
        ) from None


def field_problem(fault: FairshiftError, *, within: str = "") -> dict[str, Any]:
    """Return the field of an error, and its text."""
    problem = of_error(fault)
    field = within + problem.field
    return {"field": field.rstrip("."), "detail": problem.detail}
