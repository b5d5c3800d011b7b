"""fleet/transport/envelope.py: a message's address, whoever has written it."""

import json
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import HEADER, owner_header
from fleet.transport.envelope import (
    FOR_THE_QUEUE,
    Address,
    MalformedMessage,
    address,
    delivered,
    parsed,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def message(*, priority: object = 0, **headers: Any) -> dict[str, Any]:
    """Return a message with these headers, as Kombu writes it."""
    return {
        "body": "W10=",
        "headers": {"id": "7d", "task": "tests.add", "retries": 0, **headers},
        "properties": {"priority": priority, "delivery_info": {}, "delivery_tag": "theirs"},
    }


def belongs(**facts: Any) -> Address:
    return address(message(**facts), now=NOW)


@pytest.mark.parametrize("tag", ["7d:3", "", None, 7.5, ["7d"]])
def test_no_delivery_tag_passes_for_a_hint(tag: object) -> None:
    """A hint of that name would be taken for a duplicate, and the run would wait."""
    forged = message()
    forged["properties"]["delivery_tag"] = tag
    assert uuid.UUID(address(forged, now=NOW).id)


@pytest.mark.parametrize(
    ("theirs", "ours"), [(0, 9), (9, 0), (4, 5), (-3, 9), (77, 0), (None, 9), ("x", 9), ([], 9)]
)
def test_priorities_are_turned_round(theirs: object, ours: int) -> None:
    """Lower is first on Celery's Redis, higher here; an invalid one is Celery's own 0."""
    assert belongs(priority=theirs).priority == ours


@pytest.mark.parametrize(
    ("eta", "waited_seconds", "delay"),
    [
        ("2026-03-01T12:01:30+00:00", None, 90_000_000),
        ("2026-03-01T12:01:30", None, 90_000_000),  # without a zone it is UTC, as Celery writes it
        *((eta, None, 0) for eta in (None, "", "tomorrow", 7, "2020-01-01T00:00:00+00:00")),
        (None, 2, -2_000_000),
        *((None, seconds, 0) for seconds in (-2, True, "3", 1e300)),
        *(("2026-03-01T12:00:03+00:00", seconds, 3_000_000) for seconds in (2, -2, "3")),
    ],
)
def test_a_delay_is_from_now(eta: object, waited_seconds: object, delay: int) -> None:
    """Clocks of machines differ. What has waited before is due before now.

    An ETA in the past is not used: any client can write one, and would claim a place. A value that
    is no time is no delay: the worker's own refusal of it is the better one.
    """
    assert belongs(eta=eta, **{HEADER: {"waited_seconds": waited_seconds}}).delay == delay


@pytest.mark.parametrize(
    ("seconds", "deadline"),
    [(2, 2_000_000), (0.5, 500_000), (None, None), (True, None), ("3", None)],
)
def test_a_deadline_is_relative(seconds: object, deadline: int | None) -> None:
    """In microseconds; an invalid number means none."""
    assert belongs(**{HEADER: {"not_after_seconds": seconds}}).deadline == deadline


@pytest.mark.parametrize("of", [str, str.encode])
def test_a_name_that_no_database_can_store_is_refused(of: Callable[[str], str | bytes]) -> None:
    """Celery would store it as the outcome's, in the worker's main process, and fall over."""
    for name in ("id", "root_id"):
        raw = of(json.dumps(message(**{name: "7\0d"})))
        with pytest.raises(MalformedMessage, match=f"{name} has a NUL"):
            delivered(raw, tag="x#1")
    assert delivered(of(json.dumps(message(argsrepr="('\\\\x00',)"))), tag="x#1")


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN", "1e308", "9" * 4_000])
def test_numbers_without_measure_are_none(number: str) -> None:
    """JSON of others has them."""
    facts = {"run": "7d", "not_after_seconds": "N", "waited_seconds": "W", "token": "T"}
    raw = json.dumps(message(priority="P", **{HEADER: facts}))
    for mark in '"P"', '"N"', '"W"', '"T"':
        raw = raw.replace(mark, number)
    found = address(parsed(raw), now=NOW)
    assert (found.deadline, found.delay, found.id) == (None, 0, "7d:0")


def test_what_redis_cannot_be_told_is_replaced() -> None:
    """Half of a character is no text: it must not stop the worker that adopts it."""
    half = message(task="\udfff", **owner_header("acme", submission="\ud800"))
    half["properties"]["delivery_tag"] = "\ud800"
    found = address(half, now=NOW)
    assert (found.id, found.task, found.submission) == ("?", "?", "?")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "a list that is no hint"),
        (b"{}", "headers is no object"),
        (b'{"headers": {}, "properties": 1}', "properties is no object"),
        (b'{"headers": {}, "properties": {}}', "properties.delivery_info is no object"),
        (b'{"__type__": "uuid", "__value__": 5}', "not JSON"),
        (b'{"__type__": "decimal", "__value__": "x"}', "not JSON"),
        (b'{"__type__": "bytes", "__value__": 5}', "not JSON"),
        (b'{"__type__": [], "__value__": 5}', "not JSON"),
    ],
)
def test_what_is_no_message_says_why(raw: bytes, reason: str) -> None:
    """In one class, by which it is put aside."""
    with pytest.raises(MalformedMessage, match=reason):
        parsed(raw)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("id", "task", "retries", "eta"), JSON),
        HEADER: JSON
        | st.fixed_dictionaries(
            {},
            optional=dict.fromkeys(
                ("owner", "submission", "lock", "run", "token", *FOR_THE_QUEUE), JSON
            ),
        ),
    },
)
PROPERTIES = st.fixed_dictionaries({}, optional={"priority": JSON, "delivery_info": JSON})
ANYTHING = JSON | st.fixed_dictionaries({"headers": HEADERS | JSON, "properties": PROPERTIES})


@given(ANYTHING)
def test_whatever_is_written_has_an_address_or_is_put_aside(written: object) -> None:
    """No other outcome, and every part of the address can be stored in Redis."""
    raw = json.dumps(written).encode()
    try:
        group = address(parsed(raw), now=NOW).group(raw)
    except MalformedMessage:
        return
    assert len(group) == 9
    _id, _owner, _submission, priority, delay, deadline, *_texts = group
    assert priority in range(10) and isinstance(delay, int)
    assert deadline == "" or isinstance(deadline, int)
    for value in group:
        assert len(value if isinstance(value, bytes) else str(value).encode()) <= max(
            2_000, len(raw)
        )
    with suppress(MalformedMessage):  # then the worker that takes it quarantines it
        delivered(raw, tag="x#1")
