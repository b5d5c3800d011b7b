"""docs/operate/settings.md: its lists hold exactly the variables that the code reads."""

import re
from collections.abc import Iterable, Sequence

from config.settings import env
from jobs.core.conf import DEFAULTS
from tests.docs.pages import PROJECT, code_words, entries, read

PAGE = read("docs/operate/settings.md")
OWN = entries(PAGE, after="## Fairshift's own")
INSTALLATION = entries(PAGE, after="## The installation's")
FLOWER = entries(PAGE, after="## Flower's")
PREFIX = "FAIRSHIFT_"

ENVIRON = re.compile(r"environ(?:\.get|\.setdefault|\.pop)?[\[(]\s*\"([A-Z_]+)\"")
# Django's own, which names the settings file.
NOT_OURS = {"DJANGO_SETTINGS_MODULE"}


def names(rows: Iterable[Sequence[str]]) -> list[str]:
    return [code_words(row[0])[0] for row in rows]


def test_every_variable_is_listed_once_and_no_other() -> None:
    """What the settings file reads is in the lists, and what is in the lists is read."""
    listed = names(OWN) + names(INSTALLATION)
    assert len(listed) == len(set(listed))
    assert set(listed) == env._known


def test_variables_read_elsewhere_are_known() -> None:
    """A variable that another module reads is in a list of the page, or in CONTRIBUTING's."""
    modules = [
        path for top in ("config", "fleet", "jobs") for path in (PROJECT / top).rglob("*.py")
    ]
    found = {name for path in modules for name in ENVIRON.findall(path.read_text(encoding="utf-8"))}
    aids = names(entries(read("CONTRIBUTING.md"), after="### Variables for tests"))
    assert found - NOT_OURS <= env._known | set(names(FLOWER)) | set(aids)


def test_every_key_of_fairshift_is_described() -> None:
    """Each key has a variable in the list, or is named as one without."""
    with_variable = {name.removeprefix(PREFIX) for name in names(OWN)}
    sentence = PAGE[PAGE.index("have no variable") :].partition("\n\n")[0]
    without = {word for word in code_words(sentence) if word.isupper()}
    assert with_variable.isdisjoint(without)
    assert with_variable | without == set(DEFAULTS)
