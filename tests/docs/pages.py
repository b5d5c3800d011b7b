"""The project's Markdown files, read as text, tables and code blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

PROJECT = Path(__file__).resolve().parents[2]

_BLOCK = re.compile(r"^( *)```([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its info string, and its text."""

    info: str
    text: str


def pages() -> list[Path]:
    """Return every Markdown file that belongs to the project's documentation."""
    return [*sorted(PROJECT.glob("*.md")), *sorted((PROJECT / "docs").rglob("*.md"))]


def read(name: str) -> str:
    """Return the text of one page, named from the project's folder."""
    return (PROJECT / name).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """Return a page's text without its fenced blocks."""
    return _BLOCK.sub("", text)


def blocks(text: str, *, info: str) -> list[Block]:
    """Return the fenced blocks whose info string is `info`, or begins with it."""
    found = (Block(match[2].strip(), dedent(match[3])) for match in _BLOCK.finditer(text))
    return [block for block in found if f"{block.info} ".startswith(f"{info} ")]


def block(text: str, name: str, *, language: str = "python") -> str:
    """Return the text of the one block with this language and name."""
    [found] = blocks(text, info=f"{language} {name}")
    return found.text


def table(text: str, *, after: str) -> list[list[str]]:
    """Return the cells of the first table after a heading, without its two head lines."""
    page = f"\n{text}"
    lines = iter(page[page.index(f"\n{after}\n") :].splitlines())
    return list(_rows(lines))[2:]


def _rows(lines: Iterator[str]) -> Iterator[list[str]]:
    started = False
    for line in lines:
        if line.startswith("|"):
            started = True
            # A cell's own bars are written as \|.
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        elif started:
            return


def entries(text: str, *, after: str) -> list[tuple[str, str]]:
    """Return the first list after a heading: the texts before and after each entry's colon."""
    page = f"\n{text}"
    lines = page[page.index(f"\n{after}\n") :].partition("\n- ")[2].split("\n\n")[0]
    found = (entry.partition(": ") for entry in lines.replace("\n  ", " ").split("\n- "))
    return [(name, meaning) for name, _, meaning in found]


def code_words(cell: str) -> list[str]:
    """Return the texts between backticks."""
    return re.findall(r"`([^`]+)`", cell)
