"""fleet/tracing.py: which trace a block continues."""

import pytest

from fleet import bound_facts, continuing, current_traceparent, trace_id_of

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
GOOD = f"00-{TRACE}-00f067aa0ba902b7-01"
BAD = [
    None,
    7,
    "",
    GOOD.upper(),
    f"ff{GOOD[2:]}",
    f"{GOOD}-more",
    f"{GOOD}\n",
    GOOD.replace(TRACE, "0" * 32),
    GOOD.replace("00f067aa0ba902b7", "0" * 16),
]


def test_a_block_continues_a_trace_and_logs_its_id() -> None:
    with continuing(GOOD):
        assert (current_traceparent(), bound_facts()["trace_id"]) == (GOOD, TRACE)
    assert current_traceparent() == "" and "trace_id" not in bound_facts()


@pytest.mark.parametrize("header", BAD)
def test_an_invalid_header_is_ignored(header: object) -> None:
    """A caller that sends one gets no error, as the standard says."""
    assert trace_id_of(header) == ""
    with continuing(GOOD), continuing(header):
        assert current_traceparent() == GOOD
