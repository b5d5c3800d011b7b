"""jobs/checks/ignored_results.py: code that would wait for ever for a result is named."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.apps import apps

from jobs.checks.ignored_results import check_ignored_results

HEAD = """
from celery import Celery, chain, chord

app = Celery("waiting", set_as_current=False, fixups=[])
app.conf.task_ignore_result = True


@app.task(name="waiting.add")
def add(numbers):
    return sum(numbers)


@app.task(name="waiting.total", ignore_result=False)
def total(numbers):
    return sum(numbers)


def view():
    """

Named = Callable[[str], list[str]]


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Named]:
    """Return what the check says of a view with this body, in an app of the project."""
    configs = [SimpleNamespace(path=str(tmp_path))]
    monkeypatch.setattr(apps, "get_app_configs", lambda: configs)
    monkeypatch.syspath_prepend(tmp_path)

    def look(body: str) -> list[str]:
        (tmp_path / "waiting.py").write_text(HEAD + body + "\n")
        invalidate_caches()
        import_module("waiting")
        return [message.msg for message in check_ignored_results()]

    yield look
    sys.modules.pop("waiting", None)


@pytest.mark.parametrize(
    "body",
    [
        "return chain(total.s([1]), add.s()).apply_async().get()",
        "return (total.s([1]) | add.si([2])).delay().get(timeout=3)",
        "return chord([total.s([1])])(add.s()).get()",
        "return chord([total.s([1])], add.s()).apply_async().get()",
        "result = chain(total.s([1]), add.s())()\n    return result.get()",
        "return chain(total.s([1]), chain(total.s(), add.s())).delay().get()",
    ],
)
def test_code_that_waits_for_an_ignored_result_is_named(named: Named, body: str) -> None:
    """With its line and the task."""
    [text] = named(body)
    assert "waiting, line " in text and "waiting.add" in text


@pytest.mark.parametrize(
    "body",
    [
        "return chain(add.s([1]), total.s()).apply_async().get()",
        "return chord([add.s([1])])(total.s()).get()",
        "return chain(total.s([1]), add.s()).apply_async()",
        "return chain(total.s([1]), add.s().set(ignore_result=False))().get()",
        "return chain(total.s([1]), add.s()).apply_async(ignore_result=False).get()",
        "return add.delay([1]).get()",
        "return {}.get(add)",
    ],
)
def test_other_code_is_not(named: Named, body: str) -> None:
    """A stored result, one for which the code does not wait, a single call, a dict."""
    assert named(body) == []
