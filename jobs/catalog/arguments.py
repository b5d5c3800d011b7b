"""A task's arguments as a pydantic model, for submits, the admin form and the API. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import GenericAlias
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from celery import Task
from celery.local import Proxy
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import ErrorDetails

from jobs.catalog.encoding import encode_body
from jobs.catalog.signatures import resolved_signature
from jobs.core.errors import ArgumentError
from jobs.core.inputs import near_hint

_schemas: Final[WeakKeyDictionary[Task, ArgumentSchema]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class ArgumentSchema:
    """The arguments of one task. Get it with `ArgumentSchema.of(task)`."""

    task: str
    model: type[BaseModel]
    """Every argument by name, also positional-only ones and `*args`. The names are aliases; the
    fields of the model are numbered, see `fields`."""
    positional: tuple[str, ...]
    """Arguments that may be given by position, in order."""
    by_position: tuple[str, ...]
    """Positional-only arguments (before a `/`)."""
    rest: str | None
    """The name of `*args`, if the task has it."""
    fields: Mapping[str, str]
    """Names of arguments, by field of the model."""
    dump_models: Any = None
    """Celery's conversion of models to dicts, for tasks with `pydantic=True`."""

    @classmethod
    def of(cls, task: Task) -> ArgumentSchema:
        """Return the schema of a registered task, cached."""
        if isinstance(task, Proxy):
            task = task._get_current_object()
        schema = _schemas.get(task)
        if schema is None:
            schema = _schemas[task] = _schema(task)
        return schema

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments, in the signature's order."""
        return tuple(self.fields.values())

    @property
    def takes_any(self) -> bool:
        """Whether the task takes keywords of any name (`**kwargs`)."""
        return self.model.model_config.get("extra") == "allow"

    def bind(
        self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and keyword arguments in the annotations' types, without defaults.

        By name where the task allows it: equal calls have one form. Raises ArgumentError with the
        dotted path of an argument that is unknown, missing, given twice or of a wrong type.
        """
        given = self.by_name(args, kwargs or {})
        try:
            checked = self.model.model_validate(given)
        except ValidationError as error:
            raise self._argument_error(error, given) from None
        placed = self._placed(checked)
        return placed if self.dump_models is None else self.dump_models(*placed)

    def body(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None,
        embed: Mapping[str, Any] | None = None,
        *,
        max_bytes: int,
    ) -> bytes:
        """Return the body of a message with these arguments; raises as `bind`, `encode_body` do."""
        args, kwargs = self.bind(args, kwargs)
        return encode_body(args, kwargs, embed, max_bytes=max_bytes, positional=self.positional)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema (2020-12) of the arguments as one object."""
        return self.model.model_json_schema(schema_generator=_LenientJsonSchema)

    def by_name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name; `*args` is one list.

        Raises ArgumentError for one that is given twice, or of which there are too many.
        """
        if not args and all(type(name) is str for name in kwargs):
            return dict(kwargs)
        given = dict(zip(self.positional, args, strict=False))
        rest = list(args[len(self.positional) :])
        if rest:
            if self.rest is None:
                limit = len(self.positional)
                problem = f"{self.task} takes {limit} positional arguments, not {len(args)}"
                raise ArgumentError(f"args.{limit}", problem)
            given[self.rest] = rest
        for name, value in kwargs.items():
            if not isinstance(name, str):
                raise ArgumentError(repr(name), "names of arguments are strings")
            if name in given:
                raise ArgumentError(name, "is given twice, by position and by name")
            given[name] = value
        return given

    def _placed(self, checked: BaseModel) -> tuple[list[Any], dict[str, Any]]:
        """Split checked arguments into positional and keyword ones, in the signature's order."""
        values = {
            name: getattr(checked, field)
            for field, name in self.fields.items()
            if field in checked.model_fields_set
        }
        values.update(checked.model_extra or {})
        if self.rest is None and not self.by_position:
            return [], values
        rest = values.pop(self.rest, []) if self.rest is not None else []
        # With `*args` given, nothing before it can go by name.
        before = self.positional if rest else self.by_position
        given = [number for number, name in enumerate(before, start=1) if name in values]
        last = len(before) if rest else max(given, default=0)
        fields = {name: field for field, name in self.fields.items()} if last else {}
        # An omitted argument before one that is given by position has its default.
        args = [values.pop(name, getattr(checked, fields[name])) for name in before[:last]]
        return [*args, *rest], values

    def _argument_error(self, error: ValidationError, given: dict[str, Any]) -> ArgumentError:
        # Without the input: a value may be a secret.
        faults = error.errors(include_url=False, include_input=False)
        unknown = next((fault for fault in faults if fault["type"] == "extra_forbidden"), None)
        first = unknown or faults[0]
        path = _path(first, given)
        field = ".".join(path)
        if unknown is not None and len(path) == 1:
            hint = near_hint(field, self.names)
            return ArgumentError(field, f"{self.task} has no such argument{hint}")
        if first["type"] == "missing":
            return ArgumentError(field, "is required")
        # Each member of a union reports its own fault of the same value.
        problems = dict.fromkeys(fault["msg"] for fault in faults if _path(fault, given) == path)
        return ArgumentError(field, " or: ".join(problems))


class _LenientJsonSchema(GenerateJsonSchema):
    """A type that JSON schema cannot express becomes "anything", not an error."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # a class attribute in pydantic, too
        "skipped-choice",
        "non-serializable-default",
    }

    def handle_invalid_for_json_schema(self, *_: Any) -> dict[str, Any]:
        return {}


def _path(fault: ErrorDetails, given: Any) -> list[str]:
    """Return the steps of a pydantic location without names of union members and validators."""
    path: list[str] = []
    for step in fault["loc"]:
        is_missing = fault["type"] == "missing" and step == fault["loc"][-1]
        if isinstance(given, Mapping) and (step in given or is_missing):
            given = given.get(step)
        elif isinstance(given, (list, tuple)) and isinstance(step, int):
            given = given[step]
        else:
            continue
        path.append(str(step))
    return path or ["arguments"]


def _schema(task: Task) -> ArgumentSchema:
    parameters = list(resolved_signature(task.run).parameters.values())
    named = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
    # An argument may be called `json` or `_x`, which a field of a model may not.
    names = {f"argument_{number}": p.name for number, p in enumerate(named)}
    definitions: dict[str, Any] = dict(zip(names, map(_field, named), strict=True))
    return ArgumentSchema(
        task=task.name,
        model=create_model(_model_name(task.name), __base__=_base(task, parameters), **definitions),
        positional=tuple(
            p.name for p in named if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ),
        by_position=tuple(p.name for p in named if p.kind is p.POSITIONAL_ONLY),
        rest=next((p.name for p in named if p.kind is p.VAR_POSITIONAL), None),
        fields=names,
        dump_models=getattr(task, "_dump_pydantic_arguments", None),
    )


def _base(task: Task, parameters: list[inspect.Parameter]) -> type[BaseModel]:
    """Return the base of a task's model, which accepts or forbids unknown names."""
    extra = next((p for p in parameters if p.kind is p.VAR_KEYWORD), None)
    values = None if extra is None else GenericAlias(dict, (str, extra.annotation))
    annotations = {} if extra is None else {"__pydantic_extra__": values}
    config = ConfigDict(
        extra="forbid" if extra is None else "allow", title=task.name, arbitrary_types_allowed=True
    )
    body = {"__annotations__": annotations, "__module__": __name__, "model_config": config}
    return cast(type[BaseModel], type("Arguments", (BaseModel,), body))


def _field(parameter: inspect.Parameter) -> tuple[Any, Any]:
    """Return the type and the definition of a field of the model."""
    annotation: Any = parameter.annotation
    default = ... if parameter.default is parameter.empty else parameter.default
    if parameter.kind is parameter.VAR_POSITIONAL:
        annotation, default = list[annotation], []
    title = parameter.name.replace("_", " ").strip().capitalize()
    return annotation, Field(default, alias=parameter.name, title=title or parameter.name)


def _model_name(task: str) -> str:
    words = "".join(character if character.isalnum() else " " for character in task).split()
    return "".join(word.capitalize() for word in words) + "Arguments"
