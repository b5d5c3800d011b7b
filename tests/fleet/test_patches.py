"""fleet/patches.py: its table names what we touch of Celery, billiard, Kombu, redis-py; no more."""

import ast
import functools
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name, walk_packages
from types import ModuleType
from typing import Any

from fleet.patches import PATCHES, Patch
from fleet.versions import has_name as has
from tests.docs.pages import PROJECT, read

THEIRS = ("celery", "billiard", "kombu", "redis", "django_celery_beat")
OTHERS = {
    *("_asdict", "_exit", "_replace"),  # Python
    *("_body", "_default_manager", "_meta", "_raw_delete"),  # Django
    "_get_bound_routers",  # django-ninja
    *("_normalize_name", "_options"),  # tornado, in fleet/flower.py
    *("_fairshift_ends_copies", "_fairshift_guarded", "_fairshift_access"),  # our own
    "_handle_messages",  # our own
}
SELF = {"self", "cls", "super()"}


def paths(patch: Patch) -> list[str]:
    """Return a row's files, from the project's folder."""
    return [name if name.startswith("jobs/") else f"fleet/{name}" for name in patch.files.split()]


def names(patch: Patch) -> list[str]:
    return f"{patch.replaces} {patch.overrides} {patch.uses} {patch.asks}".split()


def is_private(name: str) -> bool:
    return name.startswith("_") and name.strip("_") != "" and not name.startswith("__")


def is_theirs(thing: Any) -> bool:
    return thing.__module__.partition(".")[0] in THEIRS


@functools.cache
def source(thing: Any) -> str:
    try:
        return inspect.getsource(thing)
    except OSError:
        return ""  # a class that a function of theirs has made


def test_the_installed_versions_have_each_name() -> None:
    """A version that lacks one fails here, by that name, and not in a worker."""
    for patch in PATCHES:
        for name in set(names(patch)) - set(patch.asks.split()):
            assert has(resolve_name(patch.of), name), f"{patch.of} has no {name}"


def test_a_name_that_is_gone_is_noticed() -> None:
    """In a class, its bases and a module; a name that only instances have counts."""
    request, state = resolve_name("celery.worker.request:Request"), "celery._state"
    assert has(request, "_message") and not has(request, "_messages")
    assert has(import_module(state), "_task_stack")
    assert not has(import_module(state), "_task_stacks")


def our_modules() -> list[ModuleType]:
    """Return the modules of fleet and jobs; not Flower's, which ends a process without Flower."""
    found = [
        each.name
        for top in ("fleet", "jobs")
        for each in walk_packages([f"{PROJECT}/{top}"], f"{top}.")
    ]
    return [
        import_module(name)
        for name in found
        if ".migrations" not in name and name != "fleet.flower"
    ]


def subclasses(cls: type) -> Iterator[type]:
    yield cls
    for each in type.__subclasses__(cls):
        yield from subclasses(each)


def inherited(cls: type, used: set[str]) -> set[str]:
    """Return the names that a class, or the class it is mixed into, inherits."""
    bases = {base for each in subclasses(cls) for base in each.__mro__ if is_theirs(base)}
    return {name for name in used if any(has(base, name) for base in bases)}


def is_self(value: ast.AST) -> bool:
    return ast.unparse(value) in SELF


def on_self(tree: ast.AST) -> set[str]:
    """Return the private names that a class defines, or asks itself for."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and is_self(node.value):
            found.add(node.attr)
    return {name for name in found if is_private(name)}


def on_others(tree: ast.AST) -> set[str]:
    """Return the private names of other objects and modules, whether by dot, by text or import."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value, name) if is_private(name) and not is_self(value):
                found.add(name)
            case ast.Call(ast.Name("getattr" | "hasattr" | "setattr"), [_, ast.Constant(name), *_]):
                found.add(name)
            case ast.Subscript(ast.Attribute(_, "__dict__"), ast.Constant(name)):
                found.add(name)
            case ast.ImportFrom(module, imported) if f"{module}".startswith(THEIRS):
                found |= {each.name for each in imported}
    return {name for name in found if is_private(name)} - OTHERS


def touched(module: ModuleType) -> set[str]:
    """Return the private names of Celery, billiard and Kombu in one module of ours."""
    tree = ast.parse(source(module))
    own = on_self(tree)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found = on_others(tree) - own
    for node in classes:
        cls = getattr(module, node.name, None)
        if isinstance(cls, type):
            found |= inherited(cls, on_self(node))
    return {name for name in found if f"celery.{name}" not in {patch.of for patch in PATCHES}}


def test_each_private_name_in_our_code_has_a_row() -> None:
    """By file; and a row names no file that has stopped using its names."""
    for module in our_modules():
        path = Path(str(module.__file__)).relative_to(PROJECT).as_posix()
        rows = [patch for patch in PATCHES if path in paths(patch)]
        listed = {name for patch in rows for name in names(patch)}
        assert touched(module) <= listed, f"fleet/patches.py lacks a row for {path}"
        text = source(module)
        for patch in rows:
            used = any(re.search(rf"\b{name}\b", text) for name in names(patch))
            assert used, f"{path} uses nothing of {patch.of}"


def test_each_name_is_in_one_of_its_files() -> None:
    """A name that our code has stopped using leaves the table."""
    for patch in PATCHES:
        text = "\n".join(read(path) for path in paths(patch))
        gone = [name for name in names(patch) if not re.search(rf"\b{name}\b", text)]
        assert not gone, (patch.of, gone)
