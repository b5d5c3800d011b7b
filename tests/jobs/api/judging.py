"""schemathesis as the judge: requests made from the OpenAPI document, answers held to it."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CHECKS, load_all_checks

from jobs.api.site import document
from jobs.catalog.registry import offered
from tests.jobs.api.conftest import ROOT

NOT_ASKED = (
    # A schema cannot say that a queue, a target or an owner exists, or which options exclude each
    # other: such a request is valid by the document, and answered 422.
    "positive_data_acceptance",
    # It calls once more, without the token; the matrix of isolation does so for every operation.
    "ignored_auth",
)
"""Checks of schemathesis that do not apply, each with its reason."""


@cache
def _schema(_tasks: tuple[str, ...]) -> Any:
    """Return the document of these tasks, which is read once for all callers."""
    schema: Any = schemathesis.openapi.from_dict(document(tasks=offered(), prefix=f"{ROOT}/"))
    schema.app = get_wsgi_application()
    return schema


def judge(headers: Mapping[str, str], *, examples: int) -> int:
    """Call every operation with made-up requests; return how many. Fails at the first breach."""
    load_all_checks()
    excluded = CHECKS.get_by_names(NOT_ASKED)
    calls = 0
    for found in _schema(tuple(task.name for task in offered())).get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=examples,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        @given(case=operation.as_strategy())
        def call(case: Any) -> None:
            nonlocal calls
            calls += 1
            case.call_and_validate(headers=dict(headers), excluded_checks=excluded)

        call()
    return calls


def judge_one(
    method: str, path: str, keys: Mapping[str, Any], *, headers: Mapping[str, str]
) -> str:
    """Call one operation, and return the text of the answer. Fails at a breach."""
    operation = _schema(tuple(task.name for task in offered()))[f"{ROOT}{path}"][method]
    answer = operation.Case(path_parameters=dict(keys)).call_and_validate(
        headers=dict(headers), excluded_checks=CHECKS.get_by_names(NOT_ASKED)
    )
    return str(answer.text)
