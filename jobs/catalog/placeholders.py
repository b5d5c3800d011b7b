"""Placeholders in a target or a lock: `{device}` stands for the call's argument `device`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any, Final

from jobs.core.errors import OptionError
from jobs.core.inputs import LOCK_LIMIT, refuse_name

TARGET_LIMIT: Final = 200


def filled(option: str, template: str, calls: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a target or lock per call: the template with the call's arguments filled in."""
    parts = _parts(option, template)
    most = TARGET_LIMIT if option == "target" else LOCK_LIMIT
    if all(name is None for _, name in parts):
        text = "".join(text for text, _ in parts)
        refuse_name(option, text, most=most)
        return [text] * len(calls)
    try:
        texts = [
            "".join(text if name is None else f"{text}{call[name]}" for text, name in parts)
            for call in calls
        ]
    except KeyError as error:
        raise OptionError(
            option, f"{template!r} names an argument that is not given: {error}"
        ) from None
    for text in texts:
        refuse_name(option, text, most=most)
    return texts


def _parts(option: str, template: str) -> list[tuple[str, str | None]]:
    """Split a template into texts, each with the name of the argument that follows it.

    Braces may hold only a name: an attribute would read our objects, a width could fill the memory.
    """
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise OptionError(option, f"{template!r} is no template: {error}") from None
    for _, name, spec, conversion in parts:
        if name is not None and (not name.isidentifier() or spec or conversion):
            raise OptionError(option, f"{template!r} may hold names of arguments only, as {{host}}")
    return [(text, name) for text, name, _, _ in parts]
