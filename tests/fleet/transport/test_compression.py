"""fleet/transport/message.py: the limit of a decompressed body."""

import tracemalloc
import zlib

import pytest
from celery import current_app
from kombu.compression import compress

from fleet.transport.message import UNPACKED_LIMIT, Message, NotUnpacked, unpacked

METHODS = ["gzip", "zlib", "application/x-gzip", "bzip2", "bzip", "lzma", "xz"]


@pytest.mark.parametrize("method", METHODS)
def test_a_body_is_unpacked_as_kombu_has_packed_it(method: str) -> None:
    """A project may set `task_compression` for its plain tasks."""
    packed, name = compress(b"[[1, 2], {}, {}]" * 1000, method)
    assert unpacked(packed, method) == unpacked(packed, name) == b"[[1, 2], {}, {}]" * 1000


@pytest.mark.parametrize("method", ["gzip", "bzip2", "lzma"])
def test_a_body_does_not_unpack_without_end(method: str) -> None:
    """At most the limit is unpacked: 64 MiB of blanks pack to 64 KB."""
    packed, _ = compress(b" " * 4 * UNPACKED_LIMIT, method)
    tracemalloc.start()
    try:
        with pytest.raises(NotUnpacked, match="limit"):
            unpacked(packed, method)
        assert tracemalloc.get_traced_memory()[1] < 3 * UNPACKED_LIMIT
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("body", "method"),
    [
        (zlib.compress(b"x" * 100)[:-3], "gzip"),
        (b"", "gzip"),
        ("text", "gzip"),
        (10**12, "gzip"),
        (zlib.compress(b"x"), "br"),
        (zlib.compress(b"x"), ["gzip"]),
    ],
)
def test_what_cannot_be_unpacked_is_refused(body: object, method: object) -> None:
    """Cut off, no bytes, or of another compression."""
    with pytest.raises(NotUnpacked):
        unpacked(body, method)


def payload(body: str, method: object) -> dict[str, object]:
    properties = {"delivery_tag": "1", "delivery_info": {}, "body_encoding": "base64"}
    kind = {"content-type": "application/json", "content-encoding": "utf-8"}
    return {"body": body, "headers": {"compression": method}, "properties": properties, **kind}


@pytest.mark.usefixtures("broker")
def test_a_message_is_read_and_given_back_as_it_came() -> None:
    """Its consumer gets the plain body, or the error that there is none."""
    with current_app.connection_for_read() as connection, connection.channel() as channel:
        packed, _ = channel.encode_body(compress(b"[1, 2]", "gzip")[0], "base64")
        message = Message(payload(packed, "gzip"), channel, accept={"application/json"})
        assert message.payload == [1, 2]
        assert message._raw["headers"] == {"compression": "gzip"}
        assert "compression" not in message.serializable()["headers"]
        bomb, _ = channel.encode_body(zlib.compress(b" " * 2 * UNPACKED_LIMIT), "base64")
        [(kind, _error, _trace)] = Message(payload(bomb, "gzip"), channel).errors
        assert kind is NotUnpacked
