"""Actions on rows, `fairshift owners pause acme`: those that the server's OpenAPI document has."""

from __future__ import annotations

import json
import re
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from jobs.client.api import Api, UsageError, new_key
from jobs.client.commands import Exit
from jobs.client.output import print_json
from jobs.client.terminal import say

ADDRESS: Final = re.compile(r".*/([\w-]+)/\{\w+\}/(\w+)")
ROW: Final = re.compile(r".*/([\w-]+)/\{\w+\}")
CHANGE: Final = "change"
"""A change has no address of its own: it is `PATCH` of the row."""
TYPES: Final = {"integer": int, "number": float}
JSON: Final = ("object", "array", "boolean")

LISTED: Final = ("runs", "jobs")
"""Nouns whose own command lists them."""

Operations = dict[str, dict[str, Mapping[str, Any]]]
"""The operations of actions, by noun and action."""


def is_action(words: Sequence[str]) -> bool:
    """Say whether a command line is about the actions of a noun."""
    if not words or not words[0].endswith("s"):
        return False
    return words[0] not in LISTED or (len(words) > 1 and not words[1].startswith("-"))


def act(api: Api, words: Sequence[str]) -> Exit:
    """Perform an action on rows by their keys, one after the other."""
    document = api.get("/openapi.json")
    noun = words[0]
    found = _operations(document)
    if noun not in found:
        raise UsageError(f"{noun} is no command, and has no actions; {', '.join(found)} have")
    given = _parser(noun, found[noun], document).parse_args(words[1:])
    operation = found[noun][given.action]
    fields = _fields(operation, document)
    sent = {field: getattr(given, field) for field in fields if hasattr(given, field)}
    for key in given.keys:
        path = f"/{noun}/{quote(key, safe='')}"
        if given.action == CHANGE:
            answer = api.patch(path, sent, version=given.if_match)
        else:
            once = new_key() if _takes_key(operation) else ""
            answer = api.post(f"{path}/{given.action}", sent, key=once, is_repeatable=bool(once))
        _show(key, answer, given)
    return Exit.OK


def _operations(document: Mapping[str, Any]) -> Operations:
    found: Operations = {}
    for path, methods in document["paths"].items():
        match = ADDRESS.fullmatch(path)
        if match and "post" in methods:
            found.setdefault(match[1], {})[match[2]] = methods["post"]
        row = ROW.fullmatch(path)
        if row and "patch" in methods:
            found.setdefault(row[1], {})[CHANGE] = methods["patch"]
    return dict(sorted(found.items()))


def _parser(
    noun: str, actions: Mapping[str, Mapping[str, Any]], document: Mapping[str, Any]
) -> ArgumentParser:
    made = ArgumentParser(prog=f"fairshift {noun}")
    names = made.add_subparsers(dest="action", required=True, metavar="action")
    for name, operation in sorted(actions.items()):
        text = operation.get("description", "").partition("\n\nScope:")[0].replace("%", "%%")
        one = names.add_parser(name, help=text, description=text)
        one.add_argument("keys", nargs="+", metavar="key", help="ids, numbers or slugs")
        one.add_argument("--json", action="store_true", help="print JSON, a value a line")
        if name == CHANGE:
            one.add_argument("--if-match", default="*", metavar="ETAG", help="default: any version")
        for field, (schema, is_required) in _fields(operation, document).items():
            option = f"--{field.replace('_', '-')}"
            kind = _type(schema)
            how: dict[str, Any] = {
                "help": str(schema.get("description", "")).replace("%", "%%"),
                "default": SUPPRESS,
            }
            if kind == "boolean" and name != CHANGE:
                how["action"] = "store_true"
            else:
                how |= {"type": _reader(kind), "required": is_required}
            if kind in JSON:
                how["metavar"] = "JSON"
            one.add_argument(option, dest=field, **how)
    return made


def _fields(
    operation: Mapping[str, Any], document: Mapping[str, Any]
) -> dict[str, tuple[Mapping[str, Any], bool]]:
    """Return the schema of each field of an operation's body, and whether it is required."""
    body = operation.get("requestBody")
    if body is None:
        return {}
    schema = body["content"]["application/json"]["schema"]
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    required = schema.get("required", ())
    return {name: (one, name in required) for name, one in schema.get("properties", {}).items()}


def _type(schema: Mapping[str, Any]) -> str:
    """Return the JSON type of a field, of several the first that is not null."""
    kinds = [schema, *schema.get("anyOf", ())]
    return next((one["type"] for one in kinds if one.get("type", "null") != "null"), "string")


def _reader(kind: str) -> Callable[[str], Any]:
    """Return what reads an option of this type; `null` is no value, where the server takes that."""

    def value(text: str) -> Any:
        if text == "null":
            return None
        return json.loads(text) if kind in JSON else TYPES.get(kind, str)(text)

    # The parser's error names it.
    value.__name__ = kind
    return value


def _takes_key(operation: Mapping[str, Any]) -> bool:
    return any(one["name"].lower() == "idempotency-key" for one in operation.get("parameters", ()))


def _show(key: str, answer: Any, given: Namespace) -> None:
    if given.json:
        print_json(answer)
        return
    state = answer.get("state") or answer.get("id") if isinstance(answer, dict) else None
    say(f"{key}  {state or 'done'}")
