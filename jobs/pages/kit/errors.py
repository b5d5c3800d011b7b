"""Answers of pages that are no success."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.utils.translation import gettext_lazy as _


class PageError(Exception):
    """An error that is shown as a page of its own."""

    def __init__(self, status: HTTPStatus, text: Any) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def not_found() -> PageError:
    """Return the answer for a row that does not exist, or not for this visitor."""
    return PageError(HTTPStatus.NOT_FOUND, _("There is no such page."))


def forbidden() -> PageError:
    """Return the answer for a visitor that may not do this."""
    return PageError(HTTPStatus.FORBIDDEN, _("You have no permission for this."))
