"""The error that refuses a worker's boot: one sentence on stderr instead of a traceback."""

from __future__ import annotations

from celery.exceptions import ImproperlyConfigured


class Refused(ImproperlyConfigured, SystemExit):
    """The worker may not start as configured. Uncaught, it prints its text; the status is 1."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.code = sentence
