"""A check of code that waits for the result of a chain or chord which ignores it."""

from __future__ import annotations

import ast
import inspect
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from celery import Task, chain, chord
from django.apps import apps
from django.core.checks import CheckMessage, register
from django.core.checks import Warning as Caution

WAITS: Final = {"get", "join", "wait"}
SENDS: Final = {"apply_async", "delay"}
SIGNS: Final = {"s", "si", "signature"}
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
LIBRARIES: Final = tuple(sysconfig.get_paths()[name] for name in ("purelib", "platlib", "stdlib"))


@register("fairshift", deploy=True)
def check_ignored_results(**_arguments: Any) -> list[CheckMessage]:
    """Warn of code that waits for the result of a chain or chord whose last task ignores its own.

    Celery gives an ignored result of a single call at once, and waits for that of a chain or chord
    without end. Only what the source says plainly is named: the last task by its name, and the call
    that waits for it in one function.
    """
    return [
        Caution(
            f"{module.__name__}, line {line}, waits for a chain or chord whose last task, {task},"
            " ignores its result: it waits for ever.",
            hint=f"Make {task} with ignore_result=False; or leave out CELERY_TASK_IGNORE_RESULT.",
            id="fairshift.W023",
        )
        for module in _own_modules()
        for line, task in _waits(module)
    ]


def _own_modules() -> Iterator[ModuleType]:
    """Yield the imported modules of the project's own apps."""
    paths = [config.path for config in apps.get_app_configs()]
    own = tuple(f"{path}/" for path in paths if not path.startswith(LIBRARIES))
    for _name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.startswith(own) and file.endswith(".py"):
            yield module


def _waits(module: ModuleType) -> Iterator[tuple[int, str]]:
    try:
        tree = ast.parse(Path(inspect.getfile(module)).read_text())
    except (OSError, SyntaxError, ValueError):
        return
    for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))]:
        nodes = list(_inside(scope))
        named = {
            target.id: node.value
            for node in nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                waiting = node.func.value if node.func.attr in WAITS else None
                sent = named.get(waiting.id) if isinstance(waiting, ast.Name) else waiting
                task = _last_of_sent(sent, module)
                if task is not None and task.ignore_result:
                    yield node.lineno, task.name


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, without those of functions in it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, FUNCTIONS):
            yield node
            yield from _inside(node)


def _last_of_sent(sent: ast.AST | None, module: ModuleType) -> Task | None:
    """Return the last task of a chain or chord that this expression sends."""
    if not isinstance(sent, ast.Call) or any(
        each.arg in {None, "ignore_result"} for each in sent.keywords
    ):
        return None
    func = sent.func
    if isinstance(func, ast.Attribute):
        return _last(func.value, module) if func.attr in SENDS else None
    # `chord(header)(body)`.
    if isinstance(func, ast.Call) and len(func.args) == 1 and _found(func.func, module) is chord:
        return _signed(sent.args[0], module) if sent.args else None
    return _last(func, module)


def _last(made: ast.AST, module: ModuleType) -> Task | None:
    """Return the last task of a chain or chord that this expression makes."""
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.BitOr):
        return _signed(made.right, module)
    if not isinstance(made, ast.Call):
        return None
    kind = _found(made.func, module)
    if len(made.args) < 2 or not (kind is chain or kind is chord):
        return None
    return _signed(made.args[-1], module)


def _signed(made: ast.AST, module: ModuleType) -> Task | None:
    """Return the task of a signature, or the last one of a chain or chord."""
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute):
        # Not one with `.set()`, which may store the result.
        task = _found(made.func.value, module) if made.func.attr in SIGNS else None
        return task if isinstance(task, Task) else None
    return _last(made, module)


def _found(name: ast.AST, module: ModuleType) -> Any:
    """Return what a name, or an attribute of one, is in a module; None if that is unknown."""
    if isinstance(name, ast.Name):
        return vars(module).get(name.id)
    if isinstance(name, ast.Attribute):
        return getattr(_found(name.value, module), name.attr, None)
    return None
