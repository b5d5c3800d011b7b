"""Bytes that are no message, by name, as any client of Redis can push them."""

import json
from typing import Any


def _message(**changes: Any) -> dict[str, Any]:
    message: dict[str, Any] = {
        "body": "W1tdLCB7fSwge31d",  # [[], {}, {}]
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {
            "lang": "py",
            "task": "contrast.run",
            "id": "01234567-0000-4000-8000-000000000000",
            "argsrepr": "()",
            "kwargsrepr": "{}",
            "retries": 0,
            "eta": None,
            "expires": None,
            "timelimit": [None, None],
            "root_id": None,
            "parent_id": None,
        },
        "properties": {
            "correlation_id": "c",
            "reply_to": "r",
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": "q"},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": "t",
        },
    }
    message.update(changes)
    return message


def _headers(**changes: Any) -> dict[str, Any]:
    message = _message()
    message["headers"].update(changes)
    return message


def _without(part: str, name: str) -> dict[str, Any]:
    message = _message()
    del message[part][name]
    return message


def _properties(**changes: Any) -> dict[str, Any]:
    message = _message()
    message["properties"].update(changes)
    return message


KINDS: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"\x00\xff not json",
    "cut off": json.dumps(_message()).encode()[:80],
    "a number": b"42",
    "a list": b"[1, 2, 3]",
    "null": b"null",
    "deeply nested": b"[" * 100_000,
    **{
        name: json.dumps(message).encode()
        for name, message in {
            "no properties": {"body": "", "headers": {}},
            "headers are null": _message(headers=None),
            "headers are a list": _message(headers=[1]),
            "no id": _without("headers", "id"),
            "an id that is a list": _headers(id=["x"]),
            "a task that is an object": _headers(task={"name": "contrast.run"}),
            "an unknown task": _headers(task="nobody.knows"),
            "a body that is no base64": _message(body="%%%"),
            "pickle": _message(**{"content-type": "application/x-python-serialize"}),
            "an eta of nonsense": _headers(eta="next tuesday"),
            "no delivery tag": _without("properties", "delivery_tag"),
            "a time limit of text": _headers(timelimit="soon"),
            "time limits of text": _headers(timelimit=["soon", "later"]),
            "an expiry of nonsense": _headers(expires="next tuesday"),
            "retries of text": _headers(retries="many"),
            "a priority of text": _properties(priority="high"),
            "an owner that is an object": _headers(fairshift={"owner": {"a": 1}}),
        }.items()
    },
}
