"""Complete the OpenAPI document: problems, scopes, and a typed body for each task on offer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Final

from pydantic import BaseModel

from jobs.api.kit.problems import MEDIA_TYPE, ProblemDetails
from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.registry import OfferedTask

ALWAYS: Final = (401, 403, 406, 422, 429, 500, 503)
"""Statuses of problems that every operation may answer."""
WITH_PATH: Final = (404,)
WITH_BODY: Final = (400, 409, 411, 412, 413, 415, 428)
CONDITIONAL: Final = (412, 428)
TYPED: Final = ("RunToSubmit", "RunsToSubmit", "JobToCreate", "JobToReplace")
"""Bodies with a task and its arguments."""
_REF: Final = "#/components/schemas/"

Json = dict[str, Any]


def complete(
    document: Json,
    *,
    tasks: Iterable[OfferedTask],
    scopes: Mapping[str, str],
    elements: Mapping[str, tuple[str, type[BaseModel]]],
) -> Json:
    """Return an OpenAPI document with what django-ninja does not know.

    `scopes` has the scope that each operation needs, by its id; `elements` the list and the model
    of its elements, by the name of a body that checks them itself.
    """
    made = deepcopy(document)
    schemas = made["components"]["schemas"]
    _add_problems(made, schemas)
    for operation in _operations(made):
        statuses = {*ALWAYS, *(WITH_BODY if "requestBody" in operation else ())}
        statuses |= {*(WITH_PATH if _has_path(operation) else ())}
        statuses |= {*(CONDITIONAL if _is_conditional(operation) else ())}
        for status in sorted(statuses):
            reference = {"$ref": "#/components/responses/Problem"}
            operation["responses"].setdefault(str(status), reference)
        operation["responses"] = {str(key): one for key, one in operation["responses"].items()}
        scope = scopes.get(operation["operationId"])
        if scope is not None:
            operation["description"] = f"{operation.get('description', '')}\n\nScope: `{scope}`."
            # OpenAPI 3.1 lets every scheme name the roles that an operation needs.
            operation["security"] = [{"Token": [scope]}, {"Session": []}]
    for body, (field, model) in elements.items():
        _add_model(schemas, model)
        schemas[body]["properties"][field]["items"] = {"$ref": _REF + model.__name__}
    _type_bodies(schemas, list(tasks))
    return made


def _operations(document: Json) -> Iterable[Json]:
    for path in document["paths"].values():
        yield from path.values()


def _has_path(operation: Json) -> bool:
    return any(one["in"] == "path" for one in operation["parameters"])


def _is_conditional(operation: Json) -> bool:
    return any(one["name"] == "If-Match" for one in operation["parameters"])


def _add_problems(document: Json, schemas: Json) -> None:
    _add_model(schemas, ProblemDetails)
    content = {MEDIA_TYPE: {"schema": {"$ref": f"{_REF}ProblemDetails"}}}
    document["components"]["responses"] = {
        "Problem": {"description": "The request had no effect.", "content": content}
    }


def _add_model(schemas: Json, model: type[BaseModel]) -> None:
    schema = model.model_json_schema(ref_template=_REF + "{model}")
    schemas.update(schema.pop("$defs", {}))
    schemas[model.__name__] = schema


def _type_bodies(schemas: Json, tasks: list[OfferedTask]) -> None:
    """Replace each body with a task by one body for each task; the task's name selects it."""
    for body in TYPED:
        general = schemas.pop(body)
        mapping = {}
        for task in tasks:
            name = f"{body}_{_name(task.name)}"
            schemas[name] = _typed(general, task, schemas, is_bulk=body == "RunsToSubmit")
            mapping[task.name] = _REF + name
        if not mapping:
            schemas[body] = general
            continue
        schemas[body] = {
            "oneOf": [{"$ref": reference} for reference in mapping.values()],
            "discriminator": {"propertyName": "task", "mapping": mapping},
        }


def _typed(general: Json, task: OfferedTask, schemas: Json, *, is_bulk: bool) -> Json:
    """Return the body's schema for one task, with the schema of its arguments."""
    arguments = ArgumentSchema.of(task.task).json_schema()
    prefix = f"{_name(task.name)}_"
    definitions = arguments.pop("$defs", {})
    for name, definition in definitions.items():
        schemas[prefix + name] = _renamed(definition, definitions, prefix)
    arguments = _renamed(arguments, definitions, prefix)
    schemas[f"{prefix}Arguments"] = arguments
    typed = deepcopy(general)
    reference: Json = {"$ref": f"{_REF}{prefix}Arguments"}
    if is_bulk:
        reference = {"type": "array", "minItems": 1, "items": reference}
    typed["properties"]["task"] = {"const": task.name, "title": "Task", "type": "string"}
    typed["properties"]["arguments"] = reference
    required = {*typed["required"], *(["arguments"] if arguments.get("required") else [])}
    typed["required"] = sorted(required)
    typed["title"] = str(task.offer.title)
    typed["description"] = str(task.offer.description)
    return typed


def _renamed(value: Any, definitions: Json, prefix: str) -> Any:
    """Return a schema whose references to its own definitions point to the document's."""
    if isinstance(value, list):
        return [_renamed(one, definitions, prefix) for one in value]
    if not isinstance(value, dict):
        return value
    made = {key: _renamed(one, definitions, prefix) for key, one in value.items()}
    if isinstance(reference := value.get("$ref"), str):
        made["$ref"] = _REF + prefix + reference.rpartition("/")[2]
    return made


def _name(task: str) -> str:
    """Return a task's name as part of a schema's name."""
    return "".join(letter if letter.isalnum() else "_" for letter in task)
