"""jobs/pages/runs: the page of one run, its cancel and its retry."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.test import Client

from fleet import Kind
from jobs.core import sql
from jobs.core.states import State
from jobs.models import AuditEntry, Owner, Run
from jobs.pages.runs.timeline import timeline_of
from jobs.runs.reads.story import Step
from tests.jobs.keys import KEY_1, KEY_3, use_ring
from tests.jobs.scenes import admitted, begun, living_worker, progressed, recorded, submitted


def path(run: Any, verb: str = "") -> str:
    return f"/runs/{getattr(run, 'pk', run)}/{verb}"


def test_a_run_is_shown_from_its_submit_to_its_end(as_root: Client, failed_run: Run) -> None:
    """States with their reasons, the attempt with its traceback, arguments, and links."""
    answer = as_root.get(path(failed_run))
    page = answer.content.decode()
    states = [line.state for line in answer.context["timeline"].lines]
    assert states == ["queued", "admitted", "running", "failed"]
    for text in (
        "no answer within 5 s",
        "Traceback (most recent call last)",
        "w1@here",
        "&quot;x&quot;: 0",
        f"/admin/jobs/run/{failed_run.pk}/change/",
        f"/task/{failed_run.pk}",
        f"/submissions/{failed_run.submission_id}/",
        "target=sw-1",
        "site: berlin",
    ):
        assert text in page, text


def test_a_runs_page_shows_what_its_task_reports(as_root: Client, acme: Owner) -> None:
    """Percent as a bar, steps, and the note as text; numbers as the reader writes them.

    Without a total there is no bar. What an earlier attempt reported is not shown.
    """
    run, admission = begun(acme)
    assert "Progress" not in as_root.get(path(run)).content.decode()
    progressed(admission, 1_250, 5_000, "<b>site</b> 3")
    page = as_root.get(path(run)).content.decode()
    assert '<progress max="100" value="25" aria-label="Progress"></progress>' in page
    assert "25 % · 1,250 / 5,000 · &lt;b&gt;site&lt;/b&gt; 3" in page
    german = as_root.get(path(run), headers={"Accept-Language": "de"}).content.decode()
    assert "Fortschritt: " in german and "25 % · 1.250 / 5.000 · " in german
    progressed(admission, 2.5)
    german = as_root.get(path(run), headers={"Accept-Language": "de"}).content.decode()
    assert "Fortschritt: 2,5</p>" in german and "<progress" not in german
    recorded(admission, Kind.RETRYING, delay=0.0)
    sql.query("UPDATE jobs_run SET state = 'queued' WHERE id = %s", [run.id])
    admitted(living_worker(), run)
    assert "Progress" not in as_root.get(path(run)).content.decode()


def test_a_missing_key_is_named_in_the_language_of_the_reader(
    as_root: Client, acme: Owner, settings: Any
) -> None:
    """For arguments, for errors of the run and of its attempts, and in lists; the API's is English.

    An id is not written with a separator of thousands.
    """
    use_ring(settings, KEY_3.replace("3:", "1234:", 1))
    [run] = submitted(acme, max_attempts=1)
    facts = {"error_type": "ValueError", "error_message": "secret", "traceback": "secret"}
    recorded(admitted(living_worker(), run), Kind.FAILED, **facts)
    use_ring(settings, KEY_1)
    german, english = "(Schlüssel 1234 fehlt)", "cannot be read (key 1234 is missing)"
    for address, count in (
        (path(run), 3),
        ("/runs/", 1),
        ("/failures/", 1),
        ("/admin/jobs/run/", 1),
        (f"/admin/jobs/run/{run.pk}/change/", 1),
    ):
        page = as_root.get(address, headers={"Accept-Language": "de"}).content.decode()
        assert page.count(f"kann nicht gelesen werden {german}") >= count, address
        assert "is missing" not in page, address
        assert english in as_root.get(address).content.decode(), address
    run.refresh_from_db()
    assert run.error_text == english


def test_arguments_and_result_need_their_permission(
    failed_run: Run, person: Callable[..., Client]
) -> None:
    """As in the admin and the API."""
    blind = person("vic", "view_run", acme="viewer").get(path(failed_run))
    assert blind.context["arguments"] is None and b"&quot;x&quot;" not in blind.content
    assert b"Hidden: you need the permission" in blind.content
    seeing = person("mia", "view_run", "view_arguments", acme="viewer").get(path(failed_run))
    assert json.loads(seeing.context["arguments"]) == {"x": 0, "y": 1}


def test_a_run_is_retried_with_its_arguments(as_root: Client, failed_run: Run) -> None:
    """An unedited field changes nothing, whatever its spaces and line ends."""
    form = as_root.get(path(failed_run, "retry/")).context["form"]
    text = form.initial["arguments"].replace("\n", "\r\n")
    as_root.post(path(failed_run, "retry/"), {"arguments": text, "reason": "network"})
    failed_run.refresh_from_db()
    assert failed_run.state == "queued" and failed_run.arguments == ([], {"x": 0, "y": 1})
    assert {*AuditEntry.objects.values_list("action", flat=True)} >= {"retry"}
    assert not AuditEntry.objects.filter(action="edit arguments").exists()


def test_wrong_arguments_are_shown_at_their_field(as_root: Client, failed_run: Run) -> None:
    """Of the JSON, and of the task. The run stays as it is."""
    for text, problem in (("{", "line 1"), ("[1]", "JSON object"), ('{"x": 1, "z": 2}', "z")):
        answer = as_root.post(path(failed_run, "retry/"), {"arguments": text})
        assert problem in str(answer.context["form"].errors["arguments"])
    failed_run.refresh_from_db()
    assert failed_run.state == "failed" and failed_run.arguments == ([], {"x": 0, "y": 1})


def test_a_history_that_cannot_be_read_hides_no_other_part(
    as_root: Client, failed_run: Run
) -> None:
    Run.objects.filter(pk=failed_run.pk).update(history=["odd"])
    page = as_root.get(path(failed_run)).content
    assert b"history of this run cannot be read" in page and b"Traceback" in page


# --- the timeline, which is pure ---------------------------------------------------------------

AT = datetime(2026, 1, 1, tzinfo=UTC)


def steps(*states: tuple[State, float]) -> list[Step]:
    """Return states, each with the seconds after which the next one begins."""
    made, at = [], AT
    for number, (state, seconds) in enumerate(states, 1):
        until = at + timedelta(seconds=seconds)
        made.append(Step(state, at, until if number < len(states) else None, "why"))
        at = until
    return made


def test_the_timeline_shows_waits_and_attempts() -> None:
    """An attempt has the sign of its end. Short states are drawn wider than they were."""
    found = timeline_of(
        steps(
            (State.HELD, 3600),
            (State.RUNNING, 8),
            (State.RETRYING, 4),
            (State.RUNNING, 30),
            (State.SUCCEEDED, 0),
        ),
        now=AT,
    )
    assert found.title == "Timeline · 1 h 0 min from submit to end, 38.0 s running"
    assert '◷<tspan class="word wide" dx="4">held 1 h 0 min</tspan>' in found.bar
    # A name that does not fit is not cut: its part has a sign, and the rest on hover.
    for sign, text in (("✕", "running 8.0 s"), ("↻", "retrying 4.0 s"), ("✓", "running 30.0 s")):
        assert f"<title>{text}: why</title>" in found.bar, text
        assert f'{sign}<tspan class="word" dx="4"></tspan>' in found.bar, text
    assert [line.stayed for line in found.lines][-2:] == ["30.0 s", ""]
