"""Requests for pages, and what their answers show."""

import re
from collections.abc import Mapping
from typing import Any, Final

from django.test import Client

from jobs.core import barrier
from jobs.pages.kit.polls import PART
from tests.jobs.admin.conftest import hidden, visible
from tests.jobs.pages.matrix.places import FORMS, Place

Keys = Mapping[str, Any]

ASKED: Final = ("get", "head", "live")
"""Requests that read: a whole page, its head, its live part."""
WITH_TEXT: Final = ("get", "live")
OF_THE_MOMENT: Final = re.compile(
    r'name="(csrfmiddlewaretoken|once)" value="[^"]*"|<time.*?</time>|\d+ (s|min|h)\b|'
    r"[\d.,]+ (seconds|minutes)|"
    r'<svg class="share".*?</span>|\d+ % of all worker time'
)
"""Tokens, times, and shares: parts of the worker time of all owners."""
SWITCH: Final = re.compile(r'<form class="owner-switch">.*?</form>', re.DOTALL)


def ask(client: Client, place: Place, keys: Keys, how: str, **query: str) -> Any:
    """Read a page: whole, its head only, or its live part."""
    return ask_at(client, place.address(keys, **query), how)


def ask_at(client: Client, address: str, how: str) -> Any:
    """Read the page at an address, whatever ETag the client may guess."""
    headers = {"If-None-Match": '"guessed"'} | ({PART: "1"} if how == "live" else {})
    answer = (client.head if how == "head" else client.get)(address, headers=headers)
    barrier.lower()
    return answer


def forget_messages(visitor: Client) -> None:
    """Drop what the visitor's next page would say about the last form."""
    visitor.cookies.pop("messages", None)


def filled_in(client: Client, place: Place, keys: Keys) -> dict[str, Any]:
    """Return what a visitor sends with the form of a page: its fields, and the hidden ones."""
    given = {k: keys["slug"] if v == "{slug}" else v for k, v in FORMS[place.id].items()}
    page = client.get(place.address(keys))
    return {**(visible(page) if page.status_code == 200 else {}), **_hidden(page), **given}


def send(client: Client, place: Place, keys: Keys, data: Mapping[str, Any]) -> Any:
    """Send a form; once more if it only has announced what it will do."""
    answer = client.post(place.address(keys), data)
    if answer.status_code == 200 and (more := _hidden(answer)):
        answer = client.post(place.address(keys), {**data, **more})
    barrier.lower()
    return answer


def _hidden(answer: Any) -> dict[str, Any]:
    is_form = (answer.context or {}).get("form") is not None
    return hidden(answer) if is_form else {}


def shown(answer: Any) -> str:
    """Return what an answer shows, without what changes by itself."""
    return f"{answer.status_code} {OF_THE_MOMENT.sub('', text_of(answer))}"


def text_of(answer: Any) -> str:
    """Return all bytes of an answer, and where it leads."""
    content = b"".join(answer) if answer.streaming else answer.content
    return f"{answer.headers.get('Location', '')} {content.decode()}"


def without_switch(text: str) -> str:
    """Return a page without the switch that names all owners of a visitor."""
    return SWITCH.sub("", text)
