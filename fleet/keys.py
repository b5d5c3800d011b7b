"""Every Redis key of Fairshift, for Python and for the scripts (`lua_names`).

The keys of a fair queue share one hash tag, so that a cluster keeps them together.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple


class Key(NamedTuple):
    """A key of a fair queue: its type in Redis, and what it stores."""

    type: Literal["hash", "list", "zset"]
    what: str
    one: str = ""
    """If set, there is a key for each of these, such as "an owner"; its name is a suffix."""


QUEUE_KEYS: Final = {
    "state": Key(
        "hash",
        "virtual time, busy period, order and lease numbers, average run time, watcher, "
        "epoch and whether it is told and filled, placeholders in the list, the audit's cursors",
    ),
    "counters": Key("hash", "what has happened, by name"),
    "meta": Key("hash", "message id to what the scripts know of it"),
    "body": Key("hash", "message id to the message, as Kombu's JSON"),
    "again": Key("hash", "messages that were published again while they were known"),
    "strikes": Key("hash", "message id to how often a process has died with it"),
    "owners": Key("zset", "the names of all owners, scored 0"),
    "accounts": Key("hash", "owner to its settings and its account; idle for a day, it leaves"),
    "eligible": Key("zset", "owners that may be chosen, by virtual time"),
    "resting": Key("zset", "owners over their rate, by the time when that ends"),
    "submissions": Key(
        "zset", "its submissions with ready messages, by virtual time", one="an owner"
    ),
    "ready": Key("zset", "its ready messages, in order", one="a submission"),
    "delayed": Key("zset", "messages by the time when they are due"),
    "locks": Key("hash", "lock to the message that holds it"),
    "parked": Key("zset", "its messages that wait for the lock, in order", one="an owner and lock"),
    "contenders": Key("zset", "owners with messages parked behind it, by the first", one="a lock"),
    "held": Key("hash", "message id to its lease", one="a worker"),
    "workers": Key("zset", "workers by the time of their last call"),
    "takes": Key("hash", "worker to its last take, until that is confirmed"),
    "expected": Key("hash", "task to its expected run time"),
    "sleepers": Key("zset", "workers that wait to be woken"),
    "wake": Key("list", "one token for each sleeper to be woken"),
    "quarantine": Key("list", "bytes that were no message"),
}
"""The keys of one fair queue."""

_SETTINGS: Final = "settings"
_AUDITED: Final = "audited"
_MENDED: Final = "mended"

WRONG: Final = "wrong:"
"""The prefix, behind the queue, of a key that had the wrong type and was put aside."""


EVERY_KEY: Final = "fairshift:*"
"""The pattern of all keys below, and of no others."""


def installation_key() -> str:
    """A string: the installation that this Redis database belongs to."""
    return "fairshift:installation"


def queue_key(queue: str, name: str, entry: str = "") -> str:
    """Return a key of a fair queue: one of QUEUE_KEYS, with an entry if it has one."""
    if bool(entry) != bool(QUEUE_KEYS[name].one):
        raise KeyError(name, entry)
    return _base(queue) + name + (f":{entry}" if entry else "")


def settings_key(queue: str) -> str:
    """A string: a digest of the owners' settings that a fair queue got within a minute."""
    return _base(queue) + _SETTINGS


def audited_key(queue: str) -> str:
    """A string that exists while a fair queue need not be audited."""
    return _base(queue) + _AUDITED


def mended_key(queue: str) -> str:
    """A string that exists for a second after a fair queue was repaired for a wrong value."""
    return _base(queue) + _MENDED


def rights_key(queue: str) -> str:
    """A key that exists only inside the script that tries the rights of a user of Redis."""
    return _base(queue) + "rights"


def rate_key(queue: str, bucket: str) -> str:
    """A string: the time in seconds until which a bucket of requests is full; it expires then."""
    return _base(queue) + f"rate:{bucket}"


def epoch_channel(queue: str) -> str:
    """The channel on which a fair queue announces a new epoch."""
    return _base(queue) + "epoch"


def lua_names() -> str:
    """Return Lua code that defines the table `key`, for scripts whose KEYS[1] is the queue."""
    base = _base("' .. KEYS[1] .. '")
    names = ", ".join(f"{name} = base .. '{_named(name)}'" for name in QUEUE_KEYS)
    channel = epoch_channel("' .. KEYS[1] .. '")
    others = f"local audited_key, mended_key = base .. '{_AUDITED}', base .. '{_MENDED}'\n"
    return (
        f"local base = '{base}'\nlocal epoch_channel = '{channel}'\n{others}"
        f"local key = {{{names}}}\n"
    )


def lua_types() -> str:
    """Return Lua code that defines the table `types`: the type of each key, or prefix of keys."""
    types: dict[str, str] = dict.fromkeys((_SETTINGS, _AUDITED, _MENDED), "string")
    types |= {_named(name): key.type for name, key in QUEUE_KEYS.items()}
    pairs = ", ".join(f"['{name}'] = '{kind}'" for name, kind in types.items())
    return f"local wrong_base = base .. '{WRONG}'\nlocal types = {{{pairs}}}\n"


def wrong_key(queue: str, key: str) -> str:
    """Return the key to which a key of the wrong type is renamed, for an operator to look at."""
    return _base(queue) + WRONG + key.removeprefix(_base(queue))


def _named(name: str) -> str:
    """Return a key's name, or its prefix if it has entries."""
    return f"{name}:" if QUEUE_KEYS[name].one else name


def _base(queue: str) -> str:
    return f"fairshift:{{{queue}}}:"
