"""jobs/apps.py: an app that is missing in INSTALLED_APPS is named."""

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from jobs.apps import NEEDED


@pytest.mark.parametrize("missing", NEEDED)
def test_a_missing_app_is_named(missing: str) -> None:
    """At the start, not as a migration without its parent or a page without its template."""
    rest = [name for name in settings.INSTALLED_APPS if name != missing]
    with (
        pytest.raises(ImproperlyConfigured, match=f"needs {missing!r} in INSTALLED_APPS"),
        override_settings(INSTALLED_APPS=rest),
    ):
        pass
