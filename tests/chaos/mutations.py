"""Messages made wrong at random, from real ones: anyone with access to Redis can push them."""

import base64
import json
from copy import deepcopy
from random import Random
from typing import Any

from fleet.transport.envelope import HINT_VALUES
from tests.chaos.malformed import KINDS

NONSENSE: list[Any] = [
    *(None, True, -1, 0, 2**70, 1e308, float("nan"), "", "x" * 10_000, "\x00", "\ud800", [], {}),
    *([[]], {"": {}}, "01234567-0000-4000-8000-000000000000", "tests.record", "flows.offered"),
    *("jobs", "system", "2999-01-01T00:00:00", "1970-01-01", ["a", 1, None], [None, None]),
]


def mutated(raw: bytes, chance: Random, ids: list[str]) -> bytes:
    """Return a message that differs from this one: in its bytes, or in its parts.

    Some name other runs, in any state, or claim to be admitted.
    """
    match chance.randrange(9):
        case 0:
            return _with_other_bytes(raw, chance)
        case 1:
            return raw[: chance.randrange(len(raw))]
        case 2:
            return chance.choice(list(KINDS.values()))
        case 3:
            return _with_other_ids(raw, chance, ids)
        case 4:
            return _forged(raw, chance, ids)
        case 5:
            return _stored(chance, ids)
        case _:
            return _with_other_parts(raw, chance)


def _with_other_bytes(raw: bytes, chance: Random) -> bytes:
    changed = bytearray(raw)
    for _ in range(chance.choice([1, 1, 2, 10, 100])):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _with_other_parts(raw: bytes, chance: Random) -> bytes:
    """Replace, remove or repeat some parts of the message, at any depth."""
    message = json.loads(raw)
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        places = list(_places(message))
        if not places:
            break
        part, name = chance.choice(places)
        if chance.random() < 0.2 and isinstance(part, dict):
            del part[name]
        else:
            part[name] = deepcopy(chance.choice(NONSENSE))
    if isinstance(message.get("body"), str) and chance.random() < 0.2:
        message["body"] = base64.b64encode(json.dumps(chance.choice(NONSENSE)).encode()).decode()
    return json.dumps(message).encode()


def _with_other_ids(raw: bytes, chance: Random, ids: list[str]) -> bytes:
    """Let one run's hint name another run."""
    message = json.loads(raw)
    own = str(message.get("headers", {}).get("id"))
    return raw.replace(own.encode(), chance.choice(ids).encode())


def _stored(chance: Random, ids: list[str]) -> bytes:
    """Return a hint as the queue stores it, of another run, mostly with one wrong value."""
    values: list[Any] = [
        chance.choice(ids),
        "1",
        "tests.record",
        "jobs",
        "acme",
        "",
        "",
        "1",
        "5",
        "",
    ]
    assert len(values) == len(HINT_VALUES)
    values[chance.randrange(len(values))] = deepcopy(chance.choice(NONSENSE))
    return json.dumps(values[: chance.choice([len(values), len(values), 3])]).encode()


def _forged(raw: bytes, chance: Random, ids: list[str]) -> bytes:
    """Claim to be an admitted call of a task that runs only with a row."""
    message = json.loads(raw)
    facts = {
        "owner": chance.choice(["acme", "globex", "nobody"]),
        "submission": chance.choice([None, 1]),
        "run": chance.choice(ids),
        "token": chance.choice([0, 1, 2]),
    }
    message["headers"] |= {"task": "flows.offered", "fairshift": facts}
    message["body"] = base64.b64encode(b'[[], {"kind": "no row"}, {}]').decode()
    return json.dumps(message).encode()


def _places(part: Any) -> list[tuple[Any, Any]]:
    """Return every (container, name or index) of a message."""
    names = part.keys() if isinstance(part, dict) else range(len(part))
    found = [(part, name) for name in names]
    for name in list(names):
        if isinstance(part[name], dict | list):
            found += _places(part[name])
    return found
