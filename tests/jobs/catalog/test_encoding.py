"""What JSON cannot hold is refused where it is submitted, by the field's name."""

import sys
import traceback
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kombu.utils import json

from jobs.catalog.encoding import encode_body, encode_result
from jobs.core.errors import ArgumentError, PayloadTooLarge, ResultError

NO_EMBED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
LIMIT = 100_000


def nested(depth: int, *, key: str | None = None) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if key is None else {key: value}
    return value


def body(value: Any, **options: Any) -> bytes:
    return encode_body([], {"value": value}, max_bytes=LIMIT, **options)


def round_trip(value: Any) -> Any:
    args, kwargs, embed = json.loads(body(value))
    assert (args, embed) == ([], NO_EMBED)
    return kwargs["value"]


@pytest.mark.parametrize(
    "value",
    [
        10**4000,
        b"\xff\x00",
        b"text",
        datetime(2026, 3, 1, 12, 30, 1, 5, tzinfo=UTC),
        datetime(2026, 3, 1),  # noqa: DTZ001  a naive time stays naive
        time(12, 30),
        Decimal("0.10"),
        {"a": [{"b": (1, 2)}], "": {}},
        nested(200),
        nested(200, key="k"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_arrive_as_they_were(value: Any) -> None:
    """Kombu's own reader, which the worker uses, gives back what was submitted."""
    expected = {"a": [{"b": [1, 2]}], "": {}} if isinstance(value, dict) and "a" in value else value
    arrived = round_trip(value)
    assert arrived == expected
    assert type(arrived) is type(value)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.dates(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(value=json_values)
def test_any_json_value_arrives_as_it_was(value: Any) -> None:
    """Whatever is accepted comes back equal."""
    assert round_trip(value) == value


@pytest.mark.parametrize(
    ("value", "field", "problem"),
    [
        (float("nan"), "value", "nan"),
        ([1, {"x": float("inf")}], "value.1.x", "inf"),
        ("\ud800", "value", "surrogate"),
        ({"k": "\udfff"}, "value.k", "surrogate"),
        ({"\ud800": 1}, r"value.\ud800", "surrogate"),
        (object(), "value", "type object"),
        ({"a": {1, 2}}, "value.a", "type set"),
        (timedelta(seconds=1), "value", "type timedelta"),
        (bytearray(b"x"), "value", "type bytearray"),
        ({1: 2}, "value", "key of type int"),
        ([{None: 2}], "value.0", "key of type NoneType"),
        (10**5000, "value", "4,300 digits"),
        ([10**5000], "value.0", "4,300 digits"),
        (nested(201), "value", "200 levels"),
        (nested(20_000), "value", "200 levels"),
        (nested(20_000, key="k"), "value", "200 levels"),
        ({"__type__": "x", "__value__": 1}, "value", "reserves"),
    ],
    # pytest would write the values, which Python refuses for the largest.
    ids=lambda given: given if isinstance(given, str) and given.isidentifier() else "",
)
def test_what_json_cannot_hold_is_refused(value: Any, field: str, problem: str) -> None:
    """The error names the dotted path and the kind, never the value."""
    with pytest.raises(ArgumentError) as caught:
        body(value)
    assert caught.value.field == field
    assert problem in caught.value.problem


def test_values_without_end_are_refused_after_a_few() -> None:
    """A circle, also one that branches at every turn; 190 levels of the same list twice."""
    circle: list[Any] = []
    circle.extend([circle, circle])
    with pytest.raises(ArgumentError, match="200 levels"):
        body(circle)
    bomb: Any = "x"
    for _ in range(190):
        bomb = [bomb, bomb]
    with pytest.raises(PayloadTooLarge):
        body(bomb)


def test_names_of_arguments_are_checked_too() -> None:
    """Free keyword arguments can carry any name; kombu's own marks would not survive."""
    with pytest.raises(ArgumentError, match="surrogate"):
        encode_body([], {"\ud800": 1}, max_bytes=LIMIT)
    with pytest.raises(ArgumentError, match="reserves"):
        encode_body([], {"__type__": "x", "__value__": 1}, max_bytes=LIMIT)
    with pytest.raises(ArgumentError, match="key of type int"):
        encode_body([], {1: 1}, max_bytes=LIMIT)  # type: ignore[dict-item]


def test_the_embed_is_written_and_checked() -> None:
    """Callbacks travel in the third part of the body."""
    embed = NO_EMBED | {"callbacks": [{"task": "next", "args": [1]}]}
    assert json.loads(encode_body([1], {}, embed, max_bytes=LIMIT)) == [[1], {}, embed]
    with pytest.raises(ArgumentError) as caught:
        encode_body([], {}, NO_EMBED | {"callbacks": [{2}]}, max_bytes=LIMIT)
    assert caught.value.field == "embed.callbacks.0"


def test_a_full_stack_is_no_recursion_error() -> None:
    """A caller deep in its own recursion gets a typed error, or its bytes."""

    def deep(left: int) -> Any:
        if left:
            return deep(left - 1)
        try:
            return body(nested(190))
        except ArgumentError as error:
            return error

    depth = sum(1 for _ in traceback.walk_stack(None))
    for room in (120, 160, 200, 240):
        assert deep(sys.getrecursionlimit() - room - depth) is not None


class Foreign:
    def __init__(self, written: Any) -> None:
        self.written = written

    def __json__(self) -> Any:
        if isinstance(self.written, Exception):
            raise self.written
        return self if self.written is Foreign else self.written


def test_results_are_held_to_the_same_rules() -> None:
    """A result is one JSON value; an error says where and what."""
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    assert json.loads(encode_result({"at": moment}, max_bytes=LIMIT)) == {"at": moment}
    assert encode_result(None, max_bytes=LIMIT) == b"null"
    with pytest.raises(ResultError, match=r"result\.rows\.0: is of type set"):
        encode_result({"rows": [{1}]}, max_bytes=LIMIT)
    with pytest.raises(ResultError, match="200 levels"):
        encode_result(nested(20_000), max_bytes=LIMIT)
    with pytest.raises(ResultError, match="at least 101 bytes, the limit is 100"):
        encode_result("x" * 100, max_bytes=100)
    with pytest.raises(ResultError, match="limit is 100"):
        encode_result(["x"] * 200, max_bytes=100)
