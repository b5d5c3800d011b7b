"""Every action of every noun in a browser, from the row's page and from the admin."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.urls import reverse

from jobs.models import Owner, Worker
from tests.browser.conftest import NARROW
from tests.browser.hands import Hands, Keyboard, Mouse
from tests.jobs.actions.test_faces import CASES, IN_ADMIN, Case, audited

pytestmark = pytest.mark.proof

WIDE = {"width": 1280, "height": 850}


def perform(hands: Hands, case: Case, *, in_admin: bool) -> None:
    """Follow the button on the page of a new owner's row, fill the form and send it."""
    row = case.row_of(Owner.objects.create(slug=case.id.replace("_", "-")))
    # Its worker beats no more, and a keyboard may take longer than a lease.
    Worker.objects.update(heartbeat_at=F("heartbeat_at") + timedelta(hours=1))
    before = len(audited(case))
    if in_admin:
        change = f"admin:jobs_{case.noun.model_name}"
        hands.open(reverse(f"{change}_change", args=[row.pk]))
        hands.send(f'a[href^="{reverse(f"{change}_actions", args=[row.pk, case.action.name])}"]')
    else:
        hands.open(case.own(row))
        hands.send(f'main a[href^="{case.page(row)}"]')
    for name, value in case.fields().items():
        hands.fill(name, value)
    # One that counts first asks twice.
    for _ in range(2 if case.action.is_counted else 1):
        assert len(audited(case)) == before
        hands.send()
    assert len(audited(case)) == before + 1, hands.page.locator("main").inner_text()


@pytest.mark.parametrize(
    ("hands", "scheme", "size"),
    [(Mouse, "light", WIDE), (Keyboard, "dark", NARROW)],
    ids=["mouse-light-1280", "keyboard-dark-360"],
)
@pytest.mark.parametrize("in_admin", [False, True], ids=["page", "admin"])
def test_every_action(
    browse: Callable[..., Any],
    in_admin: bool,
    hands: type[Hands],
    scheme: str,
    size: dict[str, int],
) -> None:
    """By mouse, light, wide; by keyboard, dark, narrow. Pages fit, and ours have no barrier."""
    page = browse("/", viewport=size, color_scheme=scheme, timezone_id="UTC")
    page.set_default_timeout(20_000)
    seen = hands(page, name=f"{'admin' if in_admin else 'page'}-{scheme}-{size['width']}")
    wrong = []
    for case in IN_ADMIN if in_admin else [case for case in CASES if case.has_page]:
        try:
            perform(seen, case, in_admin=in_admin)
        except Exception as error:
            wrong.append(f"{case.id}: {str(error)[:600]}")
    assert not wrong, "\n\n".join(wrong)
