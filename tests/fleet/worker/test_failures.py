"""fleet/worker/failures.py: an error's text can be stored, whatever the error is."""

import traceback

import pytest
from billiard.einfo import ExceptionInfo
from billiard.exceptions import SoftTimeLimitExceeded, TimeLimitExceeded
from hypothesis import given
from hypothesis import strategies as st

from fleet.worker.failures import (
    MESSAGE_CHARACTERS,
    failure,
    format_traceback,
    safe_text,
)

MARK = 60  # characters of the sentence that says how many were left out


@given(st.text(max_size=50), st.integers(0, 200))
def test_the_text_fits_and_can_be_stored(text: str, times: int) -> None:
    """Without NUL and lone surrogates, cut in the middle."""
    shown = safe_text(ValueError(text * times))
    assert len(shown) <= MESSAGE_CHARACTERS + MARK
    assert "\x00" not in shown
    assert shown.encode().decode() == shown


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (TimeLimitExceeded(2.5), "ran longer than its time limit of 2.5 s"),
        (TimeLimitExceeded("own words"), "TimeLimitExceeded('own words',)"),
        (TimeLimitExceeded(), "TimeLimitExceeded()"),
        (
            SoftTimeLimitExceeded(),
            "was told to stop: it reached its soft time limit, or was cancelled",
        ),
        (SoftTimeLimitExceeded("own words"), "SoftTimeLimitExceeded('own words',)"),
    ],
)
def test_time_limits_have_sentences(error: Exception, text: str) -> None:
    """Except those that a task raised itself, with its own text."""
    assert safe_text(error) == text


class _Rich(Exception):
    """An error that offers its values wherever a formatter may ask."""

    def __init__(self, value: str) -> None:
        super().__init__("the other side refused")
        self.value = value

    def __repr__(self) -> str:
        return f"_Rich({self.value})"


class _Holder:
    """A value of a frame that shows a secret in each of its forms."""

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return self.value

    __str__ = __repr__


def _fail(argument: str, *rest: str, **named: str) -> None:
    holder, by_name = _Holder(argument), {"argument": argument}
    try:
        # No source line has the value, only its names.
        _deeper(holder, by_name, rest, named)
    except _Rich as error:
        raise RuntimeError("no connection") from error


def _deeper(*values: object) -> None:
    copied = [repr(value) for value in values]
    try:
        int("x" * len(copied))
    except ValueError:
        raise _Rich(copied[0]) from None


def test_a_traceback_has_no_values_of_frames() -> None:
    """Of arguments, locals, attributes of errors and their reprs: also along a chain of causes."""
    secret = "kolibri-4711"
    with pytest.raises(RuntimeError) as caught:
        _fail(secret, secret, named=secret)
    ours = format_traceback(caught.value)
    # What billiard sends from a child, with the traceback as text.
    childs = ExceptionInfo(
        (type(caught.value), caught.value, caught.value.__traceback__), internal=False
    )
    for text in (ours, str(childs.traceback)):
        assert "_deeper(holder, by_name, rest, named)" in text, "the place is there"
        assert "_Rich: the other side refused" in text and "no connection" in text
        assert secret not in text
        report = failure("run", 1, caught.value, text)
        assert secret not in repr(report)
    assert secret in _with_locals(caught.value), "the same error shows it to a formatter that asks"


def _with_locals(error: BaseException) -> str:
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    return "".join(shown.format())
