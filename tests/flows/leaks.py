"""What an installation stores, sends and shows, as bytes by place, and a search in it."""

import gzip
import threading
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import redis

from tests.flows.servers import postgres_program

READS: Final = {
    b"string": ("GET",),
    b"hash": ("HGETALL",),
    b"list": ("LRANGE", "0", "-1"),
    b"set": ("SMEMBERS",),
    b"zset": ("ZRANGE", "0", "-1", "WITHSCORES"),
    b"stream": ("XRANGE", "-", "+"),
}
"""How to read a key, by its type. DUMP and the snapshot may be compressed."""


def forms(secret: str) -> list[bytes]:
    """Return the ways in which a secret may stand in bytes; JSON and HTML leave ASCII as it is."""
    data = secret.encode()
    found = [data, data.hex().encode(), data.hex().upper().encode()]
    found += ["".join(f"\\u{ord(each):04x}" for each in secret).encode()]
    found += [secret.encode("utf-16-le"), b"".join(b"\\x%02x" % each for each in data)]
    for shift in range(3):
        # Base64 of longer bytes has this in it, whatever comes before and after.
        text = b64encode(b"\0" * shift + data)
        found.append(text[4 if shift else 0 : -4])
    return found


def places_of(secret: str, everything: Mapping[str, bytes]) -> set[str]:
    """Return the names of the places where a secret is, in any of its forms."""
    wanted = forms(secret)
    return {name for name, data in everything.items() if any(form in data for form in wanted)}


def keys_of(client: redis.Redis) -> bytes:
    """Return all keys of Redis with their values, and what DUMP gives for them."""
    found: list[bytes] = []
    for key in client.scan_iter("*"):
        if (kind := bytes(client.type(key))) == b"none":
            continue  # it has expired
        verb, *rest = READS[kind]
        value = client.execute_command(verb, key, *rest)
        found += [bytes(key), *_flat(value), bytes(client.dump(key) or b"")]
    return b"\n".join(found)


def _flat(value: Any) -> Iterator[bytes]:
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set):
        for each in value:
            yield from _flat(each)
    else:
        yield value if isinstance(value, bytes) else str(value).encode()


def snapshot_of(client: redis.Redis) -> bytes:
    """Return the file of a snapshot, without compression."""
    client.config_set("rdbcompression", "no")
    client.save()
    config = client.config_get("*")
    return (Path(config["dir"]) / config["dbfilename"]).read_bytes()


@contextmanager
def heard(client: redis.Redis) -> Iterator[list[bytes]]:
    """Yield a list that gets all messages of all channels of Redis, such as Celery's events."""
    messages: list[bytes] = []
    ends = threading.Event()
    channels = client.pubsub()
    channels.psubscribe("*")

    def listen() -> None:
        while not ends.is_set():
            if (message := channels.get_message(timeout=0.2)) is not None:
                messages.extend(_flat([message["channel"], message["data"]]))

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield messages
    finally:
        ends.set()
        thread.join()
        channels.close()


def dumps_of(url: str, folder: Path) -> dict[str, bytes]:
    """Return a plain dump, and docs/operate/backup.md's dump as what a restore reads of it."""
    plain, custom = folder / "plain.sql", folder / "fairshift.dump"
    postgres_program("pg_dump", "--format=plain", f"--file={plain}", url)
    postgres_program("pg_dump", "--format=custom", f"--file={custom}", url)
    postgres_program("pg_restore", f"--file={folder / 'restored.sql'}", str(custom))
    return {"dump": plain.read_bytes(), "backup": (folder / "restored.sql").read_bytes()}


def files_below(folder: Path) -> bytes:
    """Return the bytes of all files below a folder; those of gzip as what is in them."""
    files = [
        path.read_bytes() if path.suffix != ".gz" else gzip.decompress(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    ]
    return b"".join(files)


def page(url: str, **headers: str) -> bytes:
    """Return the headers and the body of an answer, also of a refusal."""
    try:
        answer = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return b"\n".join([str(answer.status).encode(), bytes(answer.headers), answer.read()])
