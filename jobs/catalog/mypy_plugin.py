"""A plugin for mypy: `submit` and `submit_many` are checked against the task's signature.

    plugins = ["mypy_django_plugin.main", "jobs.catalog.mypy_plugin"]

Without it a checker takes any keyword there, as options and arguments share one call; the calls of
`jobs.catalog.typed` are checked without a plugin. A task that is given by its name stays unchecked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from mypy.nodes import (
    ARG_NAMED,
    ARG_NAMED_OPT,
    ARG_POS,
    ARG_STAR2,
    ArgKind,
    DictExpr,
    Expression,
    GeneratorExpr,
    ListComprehension,
    ListExpr,
    StrExpr,
    TupleExpr,
    TypeInfo,
)
from mypy.plugin import FunctionSigContext, Plugin
from mypy.types import (
    CallableType,
    FunctionLike,
    Instance,
    Parameters,
    Type,
    TypedDictType,
    get_proper_type,
)

TASK: Final = "jobs.catalog.typed.JobTask"
OPTIONS: Final = "jobs.catalog.typed.SubmitOptions"
SUBMIT: Final = {f"jobs.runs.submission.{name}" for name in ("submit", "asubmit")}
SUBMIT_MANY: Final = {f"jobs.runs.submission.{name}" for name in ("submit_many", "asubmit_many")}

Parameter = tuple[str | None, ArgKind, Type]


class FairshiftPlugin(Plugin):
    """Gives each call of a submit the signature that its task has."""

    def get_function_signature_hook(
        self, fullname: str
    ) -> Callable[[FunctionSigContext], FunctionLike] | None:
        if fullname not in {*SUBMIT, *SUBMIT_MANY}:
            return None
        found = self.lookup_fully_qualified(OPTIONS)
        if found is None or not isinstance(found.node, TypeInfo) or not found.node.typeddict_type:
            return None
        of_call = _of_submit if fullname in SUBMIT else _of_submit_many
        return partial(of_call, options=found.node.typeddict_type)


def plugin(version: str) -> type[Plugin]:  # noqa: ARG001  mypy passes its version
    """Return the plugin's class: the entry point that mypy looks for."""
    return FairshiftPlugin


def _of_submit(context: FunctionSigContext, *, options: TypedDictType) -> FunctionLike:
    """Return the signature of a submit: the task's arguments, then the options."""
    given = context.default_signature
    parameters = _parameters(context)
    if parameters is None or _has(context, "arguments"):
        return given
    arguments = list(
        zip(parameters.arg_names, parameters.arg_kinds, parameters.arg_types, strict=True)
    )
    taken = {name for name, _, _ in arguments}
    if taken & options.items.keys():
        return given  # an argument is named as an option: `arguments={...}` is needed
    last = [one for one in arguments if one[1] is ARG_STAR2]
    first = [one for one in arguments if one[1] is not ARG_STAR2]
    task: Parameter = (None, ARG_POS, given.arg_types[0])
    return _with(given, [task, *first, *_as_keywords(options), *last])


def _of_submit_many(context: FunctionSigContext, *, options: TypedDictType) -> FunctionLike:
    """Return the signature of a bulk: its options by name; written dicts are checked."""
    given = context.default_signature
    own = list(zip(given.arg_names, given.arg_kinds, given.arg_types, strict=True))
    own = [one for one in own if one[1] is not ARG_STAR2]
    names = {name for name, _, _ in own}
    more = [option for option in _as_keywords(options) if option[0] not in names]
    parameters = _parameters(context)
    if parameters is not None and len(context.args[1]) == 1 and _are_written(context.args[1][0]):
        name, kind, given_type = own[1]
        own[1] = (name, kind, _calls_of(context, parameters, options) or given_type)
    return _with(given, [*own, *more])


def _with(given: CallableType, parameters: list[Parameter]) -> CallableType:
    names, kinds, types = zip(*parameters, strict=True)
    return given.copy_modified(arg_names=list(names), arg_kinds=list(kinds), arg_types=list(types))


def _parameters(context: FunctionSigContext) -> Parameters | None:
    """Return the arguments of the task that the call names; None if they are unknown."""
    if not context.args or len(context.args[0]) != 1:
        return None
    task = get_proper_type(context.api.get_expression_type(context.args[0][0]))
    if not isinstance(task, Instance) or task.type.fullname != TASK:
        return None
    found = get_proper_type(task.args[0])
    return found if isinstance(found, Parameters) else None


def _has(context: FunctionSigContext, name: str) -> bool:
    """Say whether the call gives this keyword."""
    index = context.default_signature.arg_names.index(name)
    return bool(context.args[index])


def _as_keywords(options: TypedDictType) -> list[Parameter]:
    """Return the options of a submit as parameters; only the owner is required."""
    return [
        (name, ARG_NAMED if name == "owner" else ARG_NAMED_OPT, option)
        for name, option in options.items.items()
    ]


def _are_written(calls: Expression) -> bool:
    """Say whether the call writes its dicts, with names as texts: `[{"x": 1}, ...]`."""
    if isinstance(calls, (ListExpr, TupleExpr)):
        elements = calls.items
    elif isinstance(calls, ListComprehension):
        elements = [calls.generator.left_expr]
    elif isinstance(calls, GeneratorExpr):
        elements = [calls.left_expr]
    else:
        return False
    return bool(elements) and all(
        isinstance(each, DictExpr) and all(isinstance(key, StrExpr) for key, _ in each.items)
        for each in elements
    )


def _calls_of(
    context: FunctionSigContext, parameters: Parameters, options: TypedDictType
) -> Type | None:
    """Return the type of the calls' dicts; None for a task that takes names which it lacks."""
    names = [name for name in parameters.arg_names if name is not None]
    if len(names) < len(parameters.arg_names) or any(map(ArgKind.is_star, parameters.arg_kinds)):
        return None
    call = TypedDictType(
        dict(zip(names, parameters.arg_types, strict=True)),
        required_keys={
            name
            for name, kind in zip(names, parameters.arg_kinds, strict=True)
            if kind.is_required()
        },
        readonly_keys=set(),
        fallback=options.fallback,
    )
    return context.api.named_generic_type("typing.Iterable", [call])
