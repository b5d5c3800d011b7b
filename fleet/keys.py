"""Every Redis key of Fairshift is spelt here.

The keys of a fair queue share one hash tag, so that a cluster keeps them together. The scripts
get their names from here as well (`lua_names`).
"""

from __future__ import annotations

from typing import Final

QUEUE_KEYS: Final = {
    "state": "hash: virtual time, busy period, order and lease numbers, average run time, watcher, "
    "epoch and how far it is told, placeholders in the list",
    "counters": "hash: what has happened, by name",
    "meta": "hash: message id to what the scripts know of it",
    "body": "hash: message id to the message, as Kombu's JSON",
    "again": "hash: messages that were published again while they were known",
    "strikes": "hash: message id to how often a process has died with it",
    "owners": "sorted set: the names of all owners, scored 0",
    "owner": "hash, one an owner: its settings and its account",
    "eligible": "sorted set: owners that may be chosen, by virtual time",
    "resting": "sorted set: owners over their rate, by the time when that ends",
    "submissions": "sorted set, one an owner: its submissions with ready messages, by virtual time",
    "ready": "sorted set, one a submission: its ready messages, in order",
    "delayed": "sorted set: messages by the time when they are due",
    "locks": "hash: lock to the message that holds it",
    "parked": "sorted set, one an owner and lock: its messages that wait for it, in order",
    "contenders": "sorted set, one a lock: owners with messages parked behind it, by the first",
    "held": "hash, one a worker: message id to its lease",
    "workers": "sorted set: workers by when they were last heard of",
    "takes": "hash: worker to its last take, until that is confirmed",
    "expected": "hash: task to its expected run time",
    "sleepers": "sorted set: workers that wait to be woken",
    "wake": "list: one token for each sleeper to be woken",
    "quarantine": "list: bytes that were no message",
}
"""The keys of one fair queue. Those that say "one a ..." are continued with its name."""

_MANY: Final = frozenset({"owner", "submissions", "ready", "parked", "contenders", "held"})


def installation_key() -> str:
    """A string: the installation that this Redis database belongs to."""
    return "fairshift:installation"


def queue_key(queue: str, name: str, of: str = "") -> str:
    """Return a key of a fair queue: one of QUEUE_KEYS, of an owner, a lock or a worker perhaps."""
    if name not in QUEUE_KEYS or bool(of) != (name in _MANY):
        raise KeyError(name, of)
    return _base(queue) + name + (f":{of}" if of else "")


def settings_key(queue: str) -> str:
    """A string: a digest of the owners' settings that a fair queue was told within a minute."""
    return _base(queue) + "settings"


def epoch_channel(queue: str) -> str:
    """A channel, on which a fair queue says that it has begun a new epoch."""
    return _base(queue) + "epoch"


def lua_names() -> str:
    """Return the Lua table `key` of these names, for scripts whose KEYS[1] is the queue."""
    base = _base("' .. KEYS[1] .. '")
    names = ", ".join(
        f"{name} = base .. '{name}{':' if name in _MANY else ''}'" for name in QUEUE_KEYS
    )
    channel = epoch_channel("' .. KEYS[1] .. '")
    return f"local base = '{base}'\nlocal epoch_channel = '{channel}'\nlocal key = {{{names}}}\n"


def _base(queue: str) -> str:
    return f"fairshift:{{{queue}}}:"
