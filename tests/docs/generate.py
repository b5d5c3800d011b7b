"""`make docs`: write the parts of docs/ that are generated from the code.

A generated part stands between `<!-- generated: name … -->` and `<!-- end -->`.
"""

import ast
import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from fleet import Event
from fleet import log_events as fleet_events
from jobs.celery_setup import OURS
from jobs.core import errors
from jobs.core import log_events as jobs_events
from jobs.core.conf import RULES, Kind, Rule
from jobs.core.states import FIRST, MOVES
from jobs.management.celery_settings import NOTES
from tests.benchmarks.scale import tables
from tests.benchmarks.scale.measured import measured
from tests.docs.pages import PROJECT, code_words, read

_PART: Final = re.compile(r"(<!-- generated: (\w+).*?-->\n)(.*?)(<!-- end -->)", re.DOTALL)
OPENAPI: Final = "docs/use/openapi.json"
CLIENT_FILTERS: Final = "jobs/client/filters.json"
KEPT: Final = re.compile("keep(:|$)")
"""The effect of settings that the page says to keep without naming them."""
SHORT: Final = 3
"""A problem of fewer words, such as "Not looked at", needs the words after its colon."""
UNSAID: Final = "(say here what it is for)"
PAGES: Final = (
    "docs/operate/celery.md",
    "docs/operate/doctor.md",
    "docs/operate/logs.md",
    "docs/operate/metrics.md",
    "docs/operate/scale.md",
    "docs/operate/settings.md",
    "docs/understand/states.md",
    "docs/use/errors.md",
)


def generated(page: str) -> str:
    """Return the page's text with its generated parts as the code has them now."""
    return _PART.sub(lambda part: part[1] + PARTS[part[2]](part[3]) + "\n" + part[4], read(page))


def settings(before: str) -> str:
    """Return a line for each setting with a variable; its purpose is taken from the old line."""
    lines = [line.partition("): ") for line in before.splitlines() if line.startswith("- `")]
    purposes = {code_words(name)[0]: purpose for name, _, purpose in lines}
    names = {f"FAIRSHIFT_{key}": (key, rule) for key, rule in RULES.items()}
    return "\n".join(
        f"- `{name}` ({_default(rule)}{_limits(key, rule)}): {purposes.get(name, UNSAID)}"
        for name, (key, rule) in names.items()
        if rule.kind is not Kind.NAME
    )


def _default(rule: Rule) -> str:
    if rule.kind is Kind.SWITCH:
        return "on" if rule.default else "off"
    if isinstance(rule.default, tuple) and rule.default:
        return f"`{','.join(rule.default)}`"
    return f"{rule.default:g}" if isinstance(rule.default, float) else str(rule.default or "none")


def _limits(key: str, rule: Rule) -> str:
    """Return the limits of a number, with the unit if its name does not end with it."""
    if rule.kind not in {Kind.SECONDS, Kind.WHOLE}:
        return ""
    unit = {
        "CHILD_NICENESS": " steps of `nice`",
        "API_MAX_DEPTH": " levels",
        "API_TOKEN_PER_MINUTE": " requests",
        "API_OWNER_PER_MINUTE": " requests",
    }.get(key, "")
    return f"; {rule.least:,} to {rule.most:,}{unit}"


def celery_settings(_before: str) -> str:
    """Return a line for the settings of Celery with the same effect; ours are marked."""
    notes = {name: effect for name, effect in NOTES.items() if not KEPT.match(effect)}
    effects = {name: f"Fairshift's: {effect}" for name, (_make, effect) in OURS.items()} | notes
    return _alike((f"`CELERY_{name.upper()}`", effect) for name, effect in sorted(effects.items()))


def _alike(meanings: Iterable[tuple[str, str]]) -> str:
    """Return a line for all names with the same meaning."""
    alike: dict[str, list[str]] = {}
    for name, meaning in meanings:
        alike.setdefault(meaning, []).append(name)
    return "\n".join(f"- {', '.join(names)}: {meaning}" for meaning, names in alike.items())


def states(_before: str) -> str:
    """Return the diagram of all moves of a run."""
    lines = [f"    [*] --> {state}" for state in MOVES if state in FIRST]
    for source, targets in MOVES.items():
        lines += ["", *(f"    {source} --> {target}" for target in MOVES if target in targets)]
    ends = [f"    {source} --> [*]" for source, targets in MOVES.items() if not targets]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, *ends, "```"])


def exceptions(_before: str) -> str:
    """Return a line for each exception of jobs/core/errors.py."""
    rows = []
    for name, found in vars(errors).items():
        if inspect.isclass(found) and found.__module__ == errors.__name__:
            base = found.__base__.__name__ if found.__base__ is not errors.FairshiftError else ""
            means = (found.__doc__ or "").splitlines()[0]
            rows.append(f"- `{name}`{base and f' (`{base}`)'}: {means}")
    return "\n".join(rows)


def events(_before: str) -> str:
    """Return the events of the two catalogues by name, those with the same advice in one line."""
    catalogues = [*vars(fleet_events).values(), *vars(jobs_events).values()]
    found = {each.name: each.advice for each in catalogues if isinstance(each, Event)}
    return _alike((f"`{name}`", advice) for name, advice in sorted(found.items()))


def checks(_before: str) -> str:
    """Return a line for each id of the system checks with its messages; `…` stands for a value."""
    return _listed(
        row for path in (PROJECT / "jobs/checks").glob("*.py") for row in _messages(path)
    )


def doctor(_before: str) -> str:
    """Return a line for each id of the doctor that no system check has."""
    folder = PROJECT / "jobs/management/doctor"
    found = [row for path in folder.glob("*.py") for row in _messages(path)]
    return _listed([*found, *_of_overview(folder / "running.py")])


def _listed(found: Iterable[tuple[str, str]]) -> str:
    alike: dict[str, list[str]] = {}
    for number, text in sorted(found):
        alike.setdefault(number, []).append(_problem(text))
    return "\n".join(f"- `{number}` {'; or: '.join(texts)}" for number, texts in alike.items())


def _problem(text: str) -> str:
    """Return what is wrong, without what follows from it."""
    first, _, consequence = text.partition(". ")[0].rstrip(".").partition(": ")
    return first if len(first.split()) > SHORT else f"{first}: {consequence}"


def _of_overview(running: Path) -> Iterator[tuple[str, str]]:
    """Yield the rules of the overview that have an id of the doctor."""
    [ids] = re.findall(r"^IDS: .*? = (\{.*?^\})", running.read_text(), re.MULTILINE | re.DOTALL)
    numbers = ast.literal_eval(ids)
    verdict = (PROJECT / "jobs/system/verdict/rules.py").read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(verdict)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Problem":
            given = {str(word.arg): word.value for word in node.keywords}
            code = getattr(given["code"], "value", "")
            if code in numbers:
                yield numbers[code], _first_text(given["text"])


def _first_text(node: ast.expr) -> str:
    texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
    return re.sub(r"%\(\w+\)s", "…", str(next(one for one in texts if isinstance(one, str))))


def _messages(path: Path) -> Iterator[tuple[str, str]]:
    constants = _constants(path)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        given = {word.arg: word.value for word in getattr(node, "keywords", ())}
        if isinstance(node, ast.Call) and {"id", "hint"} <= set(given):
            number = given["id"]
            if isinstance(number, ast.Constant):  # those of the overview have none
                yield from ((str(number.value), text) for text in _texts(node.args[0], constants))


def _texts(node: ast.expr, constants: dict[str, str]) -> list[str]:
    """Return a message's texts, one for each branch of its conditions."""
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body, constants), *_texts(node.orelse, constants)]
    if isinstance(node, ast.Constant):
        return [str(node.value).replace("__", r"\_\_")]
    if isinstance(node, ast.JoinedStr):
        return ["".join(_texts(part, constants)[0] for part in node.values).strip()]
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
        return [constants.get(node.value.id, "…")]
    return ["…"]


def _constants(path: Path) -> dict[str, str]:
    """Return the texts that a module names, its own and those that it imports from jobs."""
    found: dict[str, str] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("jobs."):
            file = PROJECT / f"{str(node.module).replace('.', '/')}.py"
            names = {name.name for name in node.names}
            found |= {name: _named(file)[name] for name in names if name in _named(file)}
    return found | _named(path)


def _named(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.parse(path.read_text(encoding="utf-8") if path.exists() else "").body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
            found[target.id] = str(value.value)
    return found


def openapi() -> str:
    """Return the OpenAPI document of the API, with the tasks that every installation has."""
    from jobs.api.site import document
    from jobs.catalog.registry import offered

    own = [item for item in offered() if item.name.startswith("fairshift.")]
    return json.dumps(document(tasks=own, prefix="/api/v1/"), indent=1, ensure_ascii=False) + "\n"


def client_filters() -> str:
    """Return the filters that `fairshift` has as options: those of the API."""
    from jobs.api.site import document

    found = document(tasks=[], prefix="/")
    lists = {noun: list(_options(found, noun)) for noun in ("runs", "jobs")}
    return json.dumps(lists, indent=1, ensure_ascii=False) + "\n"


def _options(found: dict[str, Any], noun: str) -> Iterator[dict[str, str]]:
    """Yield name, kind and help of each filter of a list."""
    for one in found["paths"][f"/{noun}"]["get"]["parameters"]:
        schema = one["schema"]
        kinds = [schema, schema.get("items", {}), *schema.get("anyOf", ())]
        refs = (kind["$ref"].rpartition("/")[2] for kind in kinds if "$ref" in kind)
        kinds += [found["components"]["schemas"][ref] for ref in refs]
        if one["in"] == "query" and one["name"] not in ("limit", "cursor"):
            kind = next(each["type"] for each in kinds if each.get("type", "null") != "null")
            said = [each["description"] for each in kinds if "description" in each][:1]
            said += [f"One of: {', '.join(each['enum'])}." for each in kinds if "enum" in each]
            yield {"name": one["name"], "kind": kind, "help": " ".join(said)}


def metrics(_before: str) -> str:
    """Return a line for families of metrics with the same meaning, with their labels."""
    from jobs.pages.metrics.families import FAMILIES

    def shown(labels: Sequence[str]) -> str:
        return f" ({', '.join(labels)})" if labels else ""

    return _alike((f"`{one.full_name}`{shown(one.labels)}", one.help) for one in FAMILIES)


PARTS: Final[dict[str, Callable[[str], str]]] = {
    "celery_settings": celery_settings,
    "settings": settings,
    "states": states,
    "exceptions": exceptions,
    "checks": checks,
    "events": events,
    "metrics": metrics,
    "doctor": doctor,
    "run_costs": lambda _before: tables.run_costs(measured()),
    "run_ceilings": lambda _before: tables.run_ceilings(measured()),
    "run_steps": lambda _before: tables.run_steps(measured()),
}


def main() -> None:
    """Write every page anew."""
    for page in PAGES:
        (PROJECT / page).write_text(generated(page), encoding="utf-8")
    _set_up_django()
    (PROJECT / OPENAPI).write_text(openapi(), encoding="utf-8")
    (PROJECT / CLIENT_FILTERS).write_text(client_filters(), encoding="utf-8")


def _set_up_django() -> None:
    """Load the project without its servers: the document needs neither."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ["DATABASE_URL"], os.environ["REDIS_URL"] = "postgresql:///none", "redis://none"
    os.environ["SECRET_KEY"] = "none"
    django.setup()


if __name__ == "__main__":
    main()
