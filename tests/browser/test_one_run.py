"""The page of a run in a real browser: where it is while it hangs, and a change while it waits."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tests.flows.tasks  # noqa: F401  registers what hangs
from jobs import submit
from jobs.core.states import State
from jobs.models import Owner
from tests.browser.conftest import NARROW, fit_a_phone, shot
from tests.flows.processes import Processes
from tests.flows.world import reached

pytestmark = pytest.mark.proof

Browse = Callable[..., Any]
SEND = "form.stacked button.main"


@pytest.fixture
def worker(site: str, tmp_path: Path) -> Iterator[Processes]:
    """A worker with three processes, beside the web process."""
    processes = Processes(tmp_path / "processes")
    (tmp_path / "processes").mkdir()
    processes.start_worker(slots=3, FAIRSHIFT_LEASE_SECONDS="30")
    processes.ready()
    yield processes
    processes.stop()


def test_where_it_is_and_what_is_changed(
    worker: Processes, browse: Browse, acme: Owner, site: str
) -> None:
    """By buttons: the stacks of three runs that hang appear, and a waiting run is changed."""
    ways = ("hang", "match", "read")
    runs = {way: submit("flows.misbehave", way=way, owner=acme) for way in ways}
    for way, run in runs.items():
        reached(run, State.RUNNING, seconds=60)
        page = browse(f"/runs/{run.id}/")
        page.click("text=Where is it?")
        page.fill("#id_reason", "it hangs")
        page.click(SEND)
        page.wait_for_selector(f"pre:has-text('in _{way}')")
        assert page.locator(f"text=in _{way}").count() == 1
        shot(page, f"look-{way}")
    waiting = submit("flows.misbehave", way="hang", owner=acme, countdown=86_400)
    page = browse(f"/runs/{waiting.id}/")
    page.click(".verbs >> text=Change")
    shot(page, "change-form")
    page.fill("#id_priority", "9")
    page.fill("#id_labels", '{"site": "ulm"}')
    page.click(SEND)
    page.wait_for_selector("text=It is changed.")
    shot(page, "changed")
    waiting.refresh_from_db()
    assert (waiting.priority, waiting.labels, waiting.due_at is None) == (9, {"site": "ulm"}, False)
    paths = [f"/runs/{runs['read'].id}/", f"/runs/{waiting.id}/", f"/runs/{waiting.id}/change/"]
    for scheme in ("light", "dark"):
        fit_a_phone(browse("/", color_scheme=scheme, viewport=NARROW), paths)
    for run in runs.values():
        run.cancel()
