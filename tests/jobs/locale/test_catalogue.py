"""jobs/locale: the German catalogue has every text, and its compiled form agrees."""

import re
from gettext import GNUTranslations
from typing import Any

from django.test import Client
from django.utils import translation

from jobs.models import Owner
from tests.jobs.locale.catalogue import MO, PO, stored, untranslated, wanted, written

FIELDS = re.compile(r"%(?:\(\w+\))?[srdg%]")


def test_the_catalogue_has_every_text_of_code_and_templates() -> None:
    """And no other: `make messages` would change nothing."""
    assert written(wanted()).decode() == PO.read_text(), "run `make messages`"


def test_every_text_is_translated() -> None:
    """None is empty, and none is a guess of a tool."""
    assert untranslated(stored()) == []


def test_translations_have_the_fields_of_their_texts() -> None:
    """A field that is missing, or has another name, would break the page."""
    for message in stored():
        many = not isinstance(message.id, str)
        ids: Any = message.id if many else (message.id,)
        strings: Any = message.string if many else (message.string,)
        for text, string in zip(ids, strings, strict=True):
            if message.id:
                assert sorted(FIELDS.findall(text)) == sorted(FIELDS.findall(string)), text


def test_the_compiled_catalogue_agrees() -> None:
    """The .mo file is committed, so that nothing has to be compiled to run."""
    with MO.open("rb") as file:
        compiled = GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    expected: dict[Any, Any] = {}
    for message in stored():
        forms: Any = message.string
        if isinstance(message.id, str):
            expected[message.id] = forms
        else:
            expected |= {(message.id[0], number): form for number, form in enumerate(forms)}
    expected.pop("")
    assert {key: text for key, text in compiled.items() if key} == expected


def test_the_browser_chooses_the_language(as_root: Client, acme: Owner) -> None:
    """A cache between must not give one reader's page to another."""
    german = as_root.get("/runs/", headers={"Accept-Language": "de-AT,de;q=0.9"})
    assert b"<h1>L\xc3\xa4ufe</h1>" in german.content and b'<html lang="de"' in german.content
    english = as_root.get("/runs/", headers={"Accept-Language": "fr, en;q=0.5"})
    assert b"<h1>Runs</h1>" in english.content
    assert "Accept-Language" in german.headers["Vary"]


def test_the_api_speaks_english_to_all(as_root: Client, acme: Owner) -> None:
    """For a caller with a session; one with a token passes no middleware of languages."""
    names = ("owners", "calendars", "runs?state=odd", "runs/1", "none", "tokens/none")
    for address in (f"/api/v1/{name}" for name in names):
        plain = as_root.get(address)
        german = as_root.get(address, headers={"Accept-Language": "de"})
        assert german.content == plain.content
        assert german.headers["Content-Language"] == plain.headers["Content-Language"] == "en"
        with translation.override("de"):
            assert as_root.get(address).content == plain.content
