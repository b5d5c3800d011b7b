"""The admin's pages of API tokens, and the API's own page, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs.models import ApiToken, Owner
from jobs.owners.tokens import make_token, revoke_token
from tests.browser.conftest import NARROW, shot

pytestmark = pytest.mark.proof

Browse = Callable[..., Any]
ADD = "/admin/jobs/apitoken/add/"
SWAGGER = "/api/v1/docs"


@pytest.mark.parametrize("width", [1280, NARROW["width"]])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_tokens_and_of_the_api(
    browse: Browse, acme: Owner, scheme: str, width: int
) -> None:
    """They fit, their texts can be read, and the console and the CSP have nothing to report."""
    scopes = ["read", "submit", "operate", "approve", "admin"]
    for name in ("pager of the night shift", "reports", "exports"):
        made = make_token(name, scopes=scopes, owner=acme)
    revoke_token(made.token)
    page = browse(ADD, viewport={"width": width, "height": 740}, color_scheme=scheme)

    wide: dict[str, int] = {}

    def look(name: str) -> None:
        shot(page, f"{name}-{scheme}-{width}")
        if (found := page.evaluate("document.documentElement.scrollWidth")) > width:
            wide[name] = found

    look("add")
    page.fill("#id_name", "shop")
    page.check("[name=scopes][value=read]")
    page.locator(".field-owner .select2-selection").click()
    page.fill(".select2-search__field", "ac")
    page.locator(".select2-results__option", has_text="acme").click()
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_selector("#secret")
    look("made")
    page.goto("/admin/jobs/apitoken/")
    look("list")
    token = ApiToken.objects.get(name="shop")
    page.goto(f"/admin/jobs/apitoken/{token.pk}/change/")
    look("token")
    page.goto(f"/admin/jobs/apitoken/{token.pk}/actions/revoke/")
    look("revoke")
    page.goto(SWAGGER)
    submit = page.locator("#operations-runs-submit_run")
    submit.locator(".opblock-summary-control").click()
    submit.locator(".try-out__btn").click()
    look("swagger")
    runs = page.locator("#operations-runs-list_runs")
    runs.locator(".opblock-summary-control").click()
    runs.locator(".try-out__btn").click()
    runs.locator(".execute").click()
    status = runs.locator(".live-responses-table .response-col_status")
    status.get_by_text("200").wait_for()
    assert not wide
