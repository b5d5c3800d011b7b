"""Messages as a client writes them that has nothing but the broker."""

import json
import uuid
from base64 import b64encode
from typing import Any

PIDBOX = "/{}.celery.pidbox"


def signature(task: str, *args: Any) -> dict[str, Any]:
    """Return a signature that takes no other arguments than these."""
    return {
        "task": task,
        "args": list(args),
        "kwargs": {},
        "options": {},
        "subtask_type": None,
        "immutable": True,
    }


def call(task: str, *args: Any, body: bytes | None = None, **headers: Any) -> str:
    """Return a plain message that calls a task; `errbacks` and a whole `body` may be given."""
    id_ = str(uuid.uuid4())
    embed = {
        "callbacks": None,
        "errbacks": headers.pop("errbacks", None),
        "chain": None,
        "chord": None,
    }
    written = json.dumps([list(args), {}, embed]).encode() if body is None else body
    return message(written, {"lang": "py", "task": task, "id": id_, "root_id": id_, **headers})


def message(body: bytes, headers: Any, *, exchange: str = "", key: str = "") -> str:
    """Return any message, as Kombu writes it to Redis."""
    return json.dumps(
        {
            "body": b64encode(body).decode(),
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": headers,
            "properties": {
                "delivery_mode": 2,
                "delivery_info": {"exchange": exchange, "routing_key": key},
                "priority": 0,
                "body_encoding": "base64",
                "delivery_tag": str(uuid.uuid4()),
            },
        }
    )
