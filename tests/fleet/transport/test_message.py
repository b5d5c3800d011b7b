"""fleet/transport/message.py: messages that no consumer is given."""

from typing import Any

import pytest
from celery import current_app

from fleet.transport.envelope import MalformedMessage
from fleet.transport.message import Message


def payload(limits: Any) -> dict[str, Any]:
    """Return a call with these time limits, as it stands in Redis."""
    properties = {"delivery_tag": "t", "delivery_info": {}}
    return {"body": "", "headers": {"timelimit": limits}, "properties": properties}


@pytest.mark.parametrize("limits", [[-1, -1], [None, -1], [float("nan"), 1], ["1", 1], [1], 1])
def test_time_limits_that_are_none_are_refused(limits: Any) -> None:
    """On stock and fair queues: a limit below 0 would end a process for each such call."""
    with current_app.connection_for_read() as connection, pytest.raises(MalformedMessage):
        Message(payload(limits), channel=connection.channel())


@pytest.mark.parametrize("limits", [None, [None, None], [0, None], [2.5, 60]])
def test_time_limits_as_celery_writes_them_pass(limits: Any) -> None:
    """The hard one and the soft one, each a number of seconds or None."""
    with current_app.connection_for_read() as connection:
        assert Message(payload(limits), channel=connection.channel()).headers["timelimit"] == limits
