"""The German catalogue: `make messages` finds the texts of code and templates, and compiles it.

Translations in the .po file are kept. A text that is new has none, and is listed: translate it in
the .po file, then call `make messages` again.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

PROJECT: Final = Path(__file__).parents[3]
PO: Final = PROJECT / "jobs/locale/de/LC_MESSAGES/django.po"
MO: Final = PO.with_suffix(".mo")
KEYWORDS: Final[dict[str, Any]] = {
    **DEFAULT_KEYWORDS,
    "gettext_lazy": None,
    "lazy": None,  # gettext_lazy, in modules that use gettext, too
    "ngettext_lazy": (1, 2),
    "phrase": None,
    "phrase_for": (2,),
    "counted_phrase": (1, 2),
    "forms": (1, 2),
}
HEADER: Final = """\
# German texts of Fairshift. `make messages` writes this file; only translate in it.
#
# Glossary: run Lauf, job Job, submission Auftrag, submit einreichen, owner Besitzer, queue
# Warteschlange, window Fenster, freeze Sperrzeit, opening Öffnung, held zurückgehalten, cap
# Obergrenze, rate Rate, share Anteil, entitled zustehend, slot Platz, attempt Versuch, outcome
# Ausgang, result Ergebnis, lock Sperre, target Ziel, missed versäumt, backfill Nachholung, failure
# Fehlschlag, audit Protokoll, history Verlauf, forecast Prognose, pause anhalten, resume
# fortsetzen, cancel abbrechen, retry wiederholen, expire verfallen, approve genehmigen.
# Task, Worker, Label, Token, Feed, Beat, Tick and Pool stay as they are."""

HEADERS: Final = (
    ("Project-Id-Version", "Fairshift"),
    ("Language", "de"),
    ("MIME-Version", "1.0"),
    ("Content-Type", "text/plain; charset=utf-8"),
    ("Content-Transfer-Encoding", "8bit"),
    ("Plural-Forms", "nplurals=2; plural=(n != 1);"),
)


def texts() -> Iterator[tuple[str | tuple[str, ...], str]]:
    """Yield each text of code and templates with the file that has it, in the order of files."""
    code = [path for path in PROJECT.glob("jobs/**/*.py") if "migrations" not in path.parts]
    for path in sorted([*code, *PROJECT.glob("templates/**/*.html")]):
        source = path.read_text()
        if path.suffix == ".html":
            # Parentheses, so that the spaces of a template are no indentation of Python.
            source = f"({templatize(source)})"
        name = str(path.relative_to(PROJECT))
        for _line, found, _comments, _context in extract(
            "python", BytesIO(source.encode()), KEYWORDS, options={"encoding": "utf-8"}
        ):
            yield _id_of(found), name


def _id_of(found: Any) -> str | tuple[str, ...]:
    return found if isinstance(found, str) else tuple(found[:2])


def stored() -> Catalog:
    """Return the catalogue in the .po file."""
    with PO.open("rb") as file:
        return read_po(file, locale="de", domain="django")


def wanted() -> Catalog:
    """Return the catalogue that the .po file should be: texts of now, translations as stored."""
    kept = stored() if PO.exists() else Catalog(locale="de")
    made = Catalog(locale="de", domain="django", fuzzy=False)
    for text, name in texts():
        before = kept.get(text if isinstance(text, str) else text[0])
        known = before.string if before is not None and _is_like(before, text) else None
        made.add(text, known, locations=[(name, None)])  # type: ignore[list-item]
    return made


def _is_like(message: Message, text: str | tuple[str, ...]) -> bool:
    return isinstance(message.id, str) == isinstance(text, str)


def written(catalogue: Catalog) -> bytes:
    """Return the bytes of the .po file."""
    file = BytesIO()
    options = {"omit_header": True, "sort_output": True, "include_lineno": False}
    write_po(file, catalogue, width=100, **options)
    heads = "".join(f'"{name}: {value}\\n"\n' for name, value in HEADERS)
    return f'{HEADER}\nmsgid ""\nmsgstr ""\n{heads}\n'.encode() + file.getvalue()


def compiled(catalogue: Catalog) -> bytes:
    """Return the bytes of the .mo file."""
    # The same bytes whenever it is compiled.
    catalogue.creation_date = catalogue.revision_date = datetime(2026, 1, 1, tzinfo=UTC)
    file = BytesIO()
    write_mo(file, catalogue)
    return file.getvalue()


def untranslated(catalogue: Catalog) -> list[str]:
    """Return the texts without a translation, or with one of not all plural forms."""
    return [
        str(message.id)
        for message in catalogue
        if (message.id and not all(_forms(message.string))) or message.fuzzy
    ]


def _forms(string: Any) -> list[str]:
    return [string] if isinstance(string, str) else list(string) or [""]


def main() -> None:
    """Write the .po file anew, compile it, and list what is not translated."""
    PO.write_bytes(written(wanted()))
    catalogue = stored()
    MO.write_bytes(compiled(catalogue))
    for text in untranslated(catalogue):
        print(f"not translated: {text}")


if __name__ == "__main__":
    main()
