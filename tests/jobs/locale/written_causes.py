"""The causes that the code writes into histories, as literals of Python and of SQL."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.jobs.locale.catalogue import PROJECT

SQL_ROWS: Final = re.compile(r"\(VALUES (.+?)\) AS next \(verdict, state, cause\)")
SQL_ROW: Final = re.compile(r"'([a-z ]*)'\)")
"""The last column of a row in SQL_ROWS."""
SQL_CASE: Final = re.compile(r"THEN '([a-z ]+)' ELSE coalesce\(nullif\(j\.cause")
"""What record.sql writes in place of the worker's cause."""


def written_causes() -> set[str]:
    """Return every literal that reaches an argument or a variable `cause`, and those of the SQL."""
    found: set[str] = set()
    for path in [*PROJECT.glob("jobs/**/*.py"), *PROJECT.glob("fleet/**/*.py")]:
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.keyword) and node.arg == "cause":
                found |= set(_texts(node.value, path))
        found |= set(_texts(ast.Name("cause"), path))
    for path in PROJECT.glob("jobs/**/sql/*.sql"):
        text = " ".join(path.read_text().split())
        rows = " ".join(SQL_ROWS.findall(text)) + ")"
        found |= {*SQL_ROW.findall(rows), *SQL_CASE.findall(text)}
    return found - {""}


def _texts(value: ast.AST | None, path: Path) -> Iterator[str]:
    """Return the texts that an expression may be: a name, `x or A`, `A if x else B`, `f(x)`."""
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Name(id=name):
            yield from _of_name(name, path)
        case ast.BoolOp(values=parts):
            for part in parts:
                yield from _texts(part, path)
        case ast.IfExp(body=first, orelse=second):
            yield from _texts(first, path)
            yield from _texts(second, path)
        case ast.Call(func=ast.Name(id=name)):
            yield from _of_name(name, path)


def _of_name(name: str, path: Path) -> Iterator[str]:
    """Return the texts of a name: assigned, returned by the function of this name, imported."""
    for node in ast.walk(_tree(path)):
        match node:
            case ast.AnnAssign(target=ast.Name(id=target), value=value) if target == name:
                yield from _texts(value, path)
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                yield from _texts(value, path)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                for target, value in zip(names, values, strict=True):
                    if isinstance(target, ast.Name) and target.id == name:
                        yield from _texts(value, path)
            case ast.FunctionDef(name=function) if function == name:
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Return):
                        yield from _texts(inner.value, path)
            case ast.ImportFrom(module=str(module), names=names):
                source = (PROJECT / module.replace(".", "/")).with_suffix(".py")
                if name in {it.name for it in names} and source.exists():
                    yield from _of_name(name, source)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())
