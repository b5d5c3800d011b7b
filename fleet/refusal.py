"""What a worker is refused for at its boot: a sentence on stderr in place of a traceback."""

from __future__ import annotations

from celery.exceptions import ImproperlyConfigured


class Refused(ImproperlyConfigured, SystemExit):
    """The worker may not start as it is configured. Uncaught, it ends the process with status 1.

    Python prints the text of a SystemExit alone.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.code = sentence
