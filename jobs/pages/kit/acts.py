"""Answers of verbs: a message on the next page says what happened."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponseRedirect

from jobs.pages.kit.visit import Visit


def done(visit: Visit, text: Any, *, to: str) -> HttpResponseRedirect:
    """Return the answer of a verb that has acted: a message, shown on the page at `to`."""
    messages.success(visit.request, text)
    return HttpResponseRedirect(to)


def failed(visit: Visit, text: Any, *, to: str) -> HttpResponseRedirect:
    """Return the answer of a verb that was refused: the reason, shown on the page at `to`."""
    messages.error(visit.request, text)
    return HttpResponseRedirect(to)
