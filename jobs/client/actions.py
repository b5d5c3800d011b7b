"""Actions on rows, `fairshift owners pause acme`: those that the server's OpenAPI document has."""

from __future__ import annotations

import json
import re
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from jobs.client.api import Api, UsageError, new_key
from jobs.client.commands import Exit
from jobs.client.output import print_json
from jobs.client.terminal import say

CHANGE: Final = "change"
TYPES: Final = {"integer": int, "number": float}
JSON: Final = ("object", "array", "boolean")
METHODS: Final = ("post", "patch", "delete")
SHOWN: Final = ("token", "secret", "address", "state", "id")
"""Fields of an answer of which the first is printed: what is shown only once before others."""
LISTED: Final = ("runs", "jobs")
"""Nouns whose own command lists them."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the document that acts on rows, or creates one."""

    method: str
    path: str
    facts: Mapping[str, Any]

    @property
    def key_count(self) -> int:
        """The number of parameters of its address."""
        return self.path.count("{")

    def address(self, key: str) -> str:
        """Return its address for a key; the parts of a key with several are separated by `/`."""
        parts = key.split("/", self.key_count - 1) if self.key_count else []
        if len(parts) != self.key_count:
            raise UsageError(f"{key!r} is not a key of {self.key_count} parts, such as acme/ann")
        found = iter(parts)
        return re.sub(r"\{\w+\}", lambda _name: quote(next(found), safe=""), self.path)

    @property
    def takes_key(self) -> bool:
        """Whether a repetition with an idempotency key acts once."""
        given = self.facts.get("parameters", ())
        return any(one["name"].lower() == "idempotency-key" for one in given)


Operations = dict[str, dict[str, Operation]]
"""The operations of actions, by noun and action."""


def is_action(words: Sequence[str]) -> bool:
    """Say whether a command line is about the actions of a noun."""
    if not words or not words[0].endswith("s"):
        return False
    return words[0] not in LISTED or (len(words) > 1 and not words[1].startswith("-"))


def act(api: Api, words: Sequence[str]) -> Exit:
    """Perform an action on rows by their keys, one after the other; or create a row."""
    document = api.get("/openapi.json")
    noun = words[0]
    found = _operations(document)
    if noun not in found:
        raise UsageError(f"{noun} is no command, and has no actions; {', '.join(found)} have")
    given = _parser(noun, found[noun], document).parse_args(words[1:])
    operation = found[noun][given.action]
    fields = _fields(operation.facts, document)
    sent = {field: getattr(given, field) for field in fields if hasattr(given, field)}
    for key in given.keys or [""]:
        once = new_key() if operation.takes_key else ""
        path = operation.address(key)
        answer = api.send(operation.method, path, sent, key=once, version=given.if_match)
        _show(key, answer, given)
    return Exit.OK


def _operations(document: Mapping[str, Any]) -> Operations:
    """Return the operations whose id is an action and a noun, at an address of this noun."""
    found: Operations = {}
    for path, methods in document["paths"].items():
        own = path.partition("/api/v1")[2] or path
        for method in METHODS:
            name, _, noun = methods.get(method, {}).get("operationId", "").partition("_")
            plural = f"{noun.replace('_', '-')}s"
            at = rf".*/{plural}(/\{{\w+\}}(/{name})?)?"
            if noun and re.fullmatch(at, own):
                operation = Operation(method.upper(), own, methods[method])
                found.setdefault(plural, {})[name] = operation
    return dict(sorted(found.items()))


def _parser(
    noun: str, actions: Mapping[str, Operation], document: Mapping[str, Any]
) -> ArgumentParser:
    made = ArgumentParser(prog=f"fairshift {noun}")
    names = made.add_subparsers(dest="action", required=True, metavar="action")
    for name, operation in sorted(actions.items()):
        said = operation.facts.get("description", "").partition("\n\nScope:")[0]
        text = said.replace("%", "%%")
        one = names.add_parser(name, help=text, description=text)
        if operation.key_count:
            words = "ids, numbers or slugs; of a member acme/ann"
            one.add_argument("keys", nargs="+", metavar="key", help=words)
        one.set_defaults(keys=[])
        one.add_argument("--json", action="store_true", help="print JSON, a value a line")
        one.set_defaults(if_match="*")
        if operation.method != "POST":
            one.add_argument("--if-match", default="*", metavar="ETAG", help="default: any version")
        for field, (schema, is_required) in _fields(operation.facts, document).items():
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
                how |= {"metavar": "JSON"} if kind in JSON else {}
            one.add_argument(option, dest=field, **how)
    return made


def _fields(
    operation: Mapping[str, Any], document: Mapping[str, Any]
) -> dict[str, tuple[Mapping[str, Any], bool]]:
    """Return the schema of each field of an operation's body, and whether it is required.

    A deletion has its fields in the query.
    """
    body = operation.get("requestBody")
    if body is None:
        given = [one for one in operation.get("parameters", ()) if one["in"] == "query"]
        return {one["name"]: (one["schema"], one.get("required", False)) for one in given}
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


def _show(key: str, answer: Any, given: Namespace) -> None:
    if given.json:
        print_json(answer)
        return
    shown = answer if isinstance(answer, dict) else {}
    said = next((shown[name] for name in SHOWN if shown.get(name)), "done")
    say(f"{key}  {said}".strip())
