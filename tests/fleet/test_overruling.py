"""fleet/overruling.py: what Fairshift sets wins over what the project sets."""

from typing import Any

import pytest
from celery import Celery

from fleet.overruling import overrule


@pytest.mark.parametrize(
    ("namespace", "theirs"),
    [
        ("CELERY", {"CELERY_BROKER_URL": "redis://theirs"}),
        ("celery", {"celery_broker_url": "redis://theirs"}),
        ("CELERY", {}),
        (None, {"broker_url": "redis://theirs"}),
        (None, {}),
    ],
)
def test_it_wins_whatever_the_form_of_their_name(
    namespace: str | None, theirs: dict[str, Any]
) -> None:
    """With a prefix as in Django's settings, without one, or not set at all."""
    with Celery("scene", set_as_current=False) as app:
        app.config_from_object(theirs, namespace=namespace)
        overrule(app.conf, broker_url="redis://ours")
        assert app.connection_for_write().hostname == "ours"
