"""The owners' parts of the workers, as the fair queues tell them now and then."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from config.demo.screen import Part
from fleet import BrokerUnavailable
from fleet.sight import Look
from jobs.conf import setting
from jobs.dispatch import owners

SPAN_SECONDS: Final = 2.0


class Shares:
    """Looks at the queues; what was received is what ended within the last two seconds."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._looks: deque[Look] = deque()

    def parts(self) -> Sequence[Part]:
        """Return a part for each owner that has had work; none while the broker is away."""
        try:
            now = owners().look(*self._names, timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
        except BrokerUnavailable:
            return ()
        self._looks.append(now)
        while now.at - self._looks[0].at > SPAN_SECONDS:
            self._looks.popleft()
        return parts_of(now, since=self._looks[0])


def parts_of(now: Look, *, since: Look) -> list[Part]:
    """Return the parts between two looks, by name; none while nobody is entitled to any."""
    entitled, received = now.entitled(), now.received(since=since)
    if not any(entitled.values()):
        return []
    return [
        Part(name, entitled[name], received[name], owner.backlog, owner.running)
        for name, owner in sorted(now.owners.items())
    ]
