"""Arguments are checked against the task's own signature."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import pytest
from celery import Celery, Task
from pydantic import BaseModel

from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.encoding import encode_body
from jobs.core.errors import ArgumentError

if TYPE_CHECKING:
    from nowhere import Unseen


ABSENT = object()


class Port(BaseModel):
    number: int
    label: str = ""


def activate(host: str, version: int = 1) -> None: ...


@pytest.fixture
def app() -> Iterator[Celery]:
    app = Celery("arguments", set_as_current=False)
    yield app
    app.close()


def schema_of(app: Celery, function: Any, **options: Any) -> ArgumentSchema:
    return ArgumentSchema.of(app.task(shared=False, **options)(function))


def test_arguments_come_back_by_name_in_the_types_of_the_annotations(app: Celery) -> None:
    """By position or by name, as text or as a number: the task gets the same call."""
    schema = schema_of(app, activate)
    assert schema.bind(["fw-17"], {"version": "41"}) == ([], {"host": "fw-17", "version": 41})
    assert schema.bind([], {"version": 41, "host": "fw-17"}) == schema.bind(["fw-17", 41])


@pytest.mark.parametrize(
    ("args", "kwargs", "field", "problem"),
    [
        (["fw"], {"versoin": 1}, "versoin", "did you mean version?"),
        ([], {"hots": "fw"}, "hots", "did you mean host?"),
        ([], {"version": 1}, "host", "is required"),
        ([], {"host": 5}, "host", "valid string"),
        (["fw"], {"version": "new"}, "version", "valid integer"),
        (["fw"], {"version": 1.5}, "version", "valid integer"),
        (["fw"], {"host": "fw"}, "host", "given twice"),
        (["fw", 1, 2], {}, "args.2", "takes 2 positional arguments, not 3"),
        (["fw"], {1: 2}, "1", "strings"),
        (["fw"], {"argument_0": "x"}, "argument_0", "no such argument"),
        (["fw"], {"self": "x"}, "self", "no such argument"),
    ],
)
def test_wrong_arguments_are_refused_by_name(
    app: Celery, args: list[Any], kwargs: dict[Any, Any], field: str, problem: str
) -> None:
    """Unknown, missing, of a wrong type, given twice: the error names the field.

    A misspelt argument is one mistake: its name is told before the missing one.
    """
    with pytest.raises(ArgumentError) as caught:
        schema_of(app, activate).bind(args, kwargs)
    assert caught.value.field == field
    assert problem in caught.value.problem


def test_the_error_does_not_repeat_the_value(app: Celery) -> None:
    """A wrong value may be a secret."""

    def connect(pin: int) -> None: ...

    with pytest.raises(ArgumentError) as caught:
        schema_of(app, connect).bind(["hunter2"])
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_bound_task_has_no_self(app: Celery) -> None:
    """`self` belongs to Celery, with and without its automatic retry around the task."""

    def activate_bound(self: Task, host: str) -> None: ...

    assert schema_of(app, activate_bound, bind=True).bind(["fw"]) == ([], {"host": "fw"})
    retried = schema_of(app, activate_bound, bind=True, name="again", autoretry_for=(OSError,))
    assert retried.bind(["fw"]) == ([], {"host": "fw"})


def test_positional_only_arguments_go_by_position(app: Celery) -> None:
    """They may be given by name, as a form does; a gap before one is filled by its default."""

    def scale(factor: int = 1, offset: int = 0, /, *, label: str = "") -> None: ...

    schema = schema_of(app, scale)
    assert schema.bind([], {}) == ([], {})
    assert schema.bind([3]) == ([3], {})
    assert schema.bind([], {"offset": "5", "label": "x"}) == ([1, 5], {"label": "x"})


def test_a_positional_list_is_checked_item_by_item(app: Celery) -> None:
    """`*args` takes values of its annotation; nothing before it can then go by name."""

    def ping(count: int = 1, *hosts: str) -> None: ...

    schema = schema_of(app, ping)
    assert schema.bind([2, "a", "b"]) == ([2, "a", "b"], {})
    assert schema.bind([], {"hosts": ["a"]}) == ([1, "a"], {})
    assert schema.bind([2]) == ([], {"count": 2})
    with pytest.raises(ArgumentError) as caught:
        schema.bind([2, "a", 7])
    assert caught.value.field == "hosts.1"


def test_free_keyword_arguments_are_checked_by_their_annotation(app: Celery) -> None:
    """`**kwargs` allows any name, and its annotation holds for each value."""

    def tag(host: str, **levels: int) -> None: ...

    schema = schema_of(app, tag)
    assert schema.bind(["fw"], {"cpu": "3"}) == ([], {"host": "fw", "cpu": 3})
    with pytest.raises(ArgumentError) as caught:
        schema.bind(["fw"], {"cpu": "high"})
    assert caught.value.field == "cpu"


def test_unannotated_and_unresolvable_arguments_take_anything(app: Celery) -> None:
    """No annotation, or one that only a type checker can see, checks nothing."""

    def loose(value, other: Unseen) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001

    value = object()
    assert schema_of(app, loose).bind([value, 1]) == ([], {"value": value, "other": 1})


def test_models_travel_as_dicts_for_pydantic_tasks(app: Celery) -> None:
    """Celery's `pydantic=True` rebuilds the model in the worker; on the way it is a dict."""

    def open_port(port: Port) -> None: ...

    schema = schema_of(app, open_port, pydantic=True)
    kept = ([], {"port": {"number": 22, "label": ""}})
    assert schema.bind([Port(number=22)]) == kept
    assert schema.bind([], {"port": {"number": "22"}}) == kept
    with pytest.raises(ArgumentError) as caught:
        schema.bind([{"label": "ssh"}])
    assert caught.value.field == "port.number"


def test_deep_values_raise_no_recursion_error(app: Celery) -> None:
    """A list nested 20,000 deep is an ArgumentError, typed and untyped."""
    deep: list[Any] = []
    for _ in range(20_000):
        deep = [deep]

    def typed(rules: list[list[int]]) -> None: ...

    def untyped(rules: Any) -> None: ...

    with pytest.raises(ArgumentError):
        schema_of(app, typed).bind([deep])
    args, kwargs = schema_of(app, untyped).bind([deep])
    with pytest.raises(ArgumentError, match="argument rules: is nested more than 200"):
        encode_body(args, kwargs, max_bytes=1_000_000)


def test_the_json_schema_describes_one_object(app: Celery) -> None:
    """The admin form and the API draw from it: names, types, defaults, what is required."""

    def plan(host: str, at: datetime, mode: Literal["a", "b"] = "a", odd: Any = ABSENT) -> None: ...

    described = schema_of(app, plan).json_schema()
    assert described["required"] == ["host", "at"]
    assert described["additionalProperties"] is False
    assert described["properties"]["host"] == {"title": "Host", "type": "string"}
    assert described["properties"]["at"]["format"] == "date-time"
    assert described["properties"]["mode"]["enum"] == ["a", "b"]
