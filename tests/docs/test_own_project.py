"""docs/start/own-project.md: its settings are those with which Fairshift itself runs.

That its files make a project that runs is shown by tests/flows/test_own_project.py.
"""

from typing import Any

from django.conf import settings

from tests.docs.pages import blocks, read

PAGE = read("docs/start/own-project.md")
THEIR_OWN = ("INSTALLED_APPS", "CELERY_TASK_QUEUES", "DATABASES", "CELERY_BROKER_URL", "FAIRSHIFT")


def test_settings_of_other_projects_are_ours() -> None:
    """The settings to copy have the values with which Fairshift itself runs."""
    [block] = blocks(PAGE, info="python settings")
    copied: dict[str, Any] = {"INSTALLED_APPS": []}
    exec(compile(block.text, "own-project.md", "exec"), copied)
    names = [name for name in copied if name.isupper() and name not in THEIR_OWN]
    assert {name: copied[name] for name in names} == {
        name: getattr(settings, name) for name in names
    }
    assert set(copied["INSTALLED_APPS"]) - {"shop"} <= set(settings.INSTALLED_APPS)
    assert repr(copied["CELERY_TASK_QUEUES"]) == repr(settings.CELERY_TASK_QUEUES)
