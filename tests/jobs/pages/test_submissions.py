"""jobs/pages/submissions: the list, and one submission with its verbs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from fleet import Kind
from jobs.models import AuditEntry, Owner, Run, Submission
from jobs.pages.kit import lists
from jobs.pages.kit.polls import PART
from jobs.pages.submissions import one
from tests.jobs.scenes import admitted, living_worker, recorded, submitted

LIST = "/submissions/"
ALL = ("view_submission", "cancel_submission", "retry_run")


def made(owner: Owner, count: int = 2, **options: Any) -> Submission:
    """Return a submission of some runs."""
    return Submission.objects.get(pk=submitted(owner, count, **options)[0].submission_id)


def path(key: Any, verb: str = "") -> str:
    return f"{LIST}{getattr(key, 'pk', key)}/{verb}"


def shown(client: Client, **query: Any) -> list[Submission]:
    rows: list[Submission] = client.get(LIST, query).context["list"].rows
    return rows


def test_the_list_shows_each_submission_with_its_progress(as_root: Client, acme: Owner) -> None:
    first, second = made(acme, label="nightly"), made(acme)
    assert shown(as_root) == [second, first]
    assert shown(as_root, label="nightly") == [first]
    assert shown(as_root, task="tests.other") == []
    assert shown(as_root, task="tests.add", age="1h") == [second, first]
    assert b"2 queued" in as_root.get(LIST).content


def test_pages_have_each_submission_once(
    as_root: Client, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "LIMIT", 2)
    all_made = [made(acme, 1) for _ in range(3)]
    first = as_root.get(LIST).context["list"]
    second = as_root.get(first.next).context["list"]
    assert first.rows + second.rows == all_made[::-1] and second.next is None


def test_members_see_submissions_of_their_owners_only(
    acme: Owner, stranger: Owner, person: Callable[..., Client]
) -> None:
    mine = made(acme)
    made(stranger)
    assert shown(person("mia", "view_submission", acme="viewer")) == [mine]


@pytest.mark.parametrize("verb", ["", "cancel/", "retry/"])
def test_a_submission_of_others_is_as_unknown_as_one_that_is_not_there(
    acme: Owner, stranger: Owner, person: Callable[..., Client], verb: str
) -> None:
    """The same status and the same bytes, for reading and for acting."""
    foreign = made(stranger)
    client = person("mia", *ALL, acme="operator")
    for ask in (client.get, client.post) if verb else (client.get,):
        answers = [ask(path(key, verb)) for key in (foreign, 2**40, 2**80)]
        assert {answer.status_code for answer in answers} == {404}
        assert len({answer.content for answer in answers}) == 1
    assert not Run.objects.exclude(state="queued").exists()


def test_one_submission_shows_its_progress_and_what_is_ahead(as_root: Client, acme: Owner) -> None:
    """The forecast and the share of its owner are shown while it runs."""
    living_worker()
    found = made(acme, 3, label="nightly")
    answer = as_root.get(path(found))
    page = answer.content.decode()
    assert answer.context["forecast"].count == 3 and answer.context["usage"] is not None
    for text in ("0 of 3", "3 queued", "Finishes by", "Share of acme", "nightly"):
        assert text in page, text
    found.cancel()
    ended = as_root.get(path(found))
    assert ended.context["usage"] is None and b"Finishes by" not in ended.content
    assert b"100 %" in ended.content and b"3 cancelled" in ended.content


def test_a_forecast_that_takes_too_long_is_replaced_by_a_rough_one(
    as_root: Client, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so."""
    monkeypatch.setattr(one, "forecast_rest", lambda _submission: None)
    found = as_root.get(path(made(acme, 2))).context["forecast"]
    assert found.count == 2 and "Rough" in found.warnings[0]


def test_the_errors_of_failed_runs_are_counted(as_root: Client, failed_run: Run) -> None:
    """Each links to these runs."""
    answer = as_root.get(path(failed_run.submission_id))
    assert answer.context["errors"] == [("builtins.TimeoutError", 1)]
    assert b"state=failed&amp;error=builtins.TimeoutError" in answer.content


def test_the_live_part_is_sent_only_when_the_progress_has_changed(
    as_root: Client, acme: Owner
) -> None:
    """Without a change the answer is 304."""
    [run] = submitted(acme)
    headers = {PART: "1"}
    first = as_root.get(path(run.submission_id), headers=headers)
    assert b"<html" not in first.content and b"csrf" not in first.content
    headers["If-None-Match"] = first["ETag"]
    assert as_root.get(path(run.submission_id), headers=headers).status_code == 304
    recorded(admitted(living_worker(), run), Kind.STARTED)
    assert as_root.get(path(run.submission_id), headers=headers).status_code == 200


def test_a_submission_is_cancelled_with_a_reason(as_root: Client, acme: Owner) -> None:
    """A repetition says that nothing is left."""
    found = made(acme, 3)
    asked = as_root.get(path(found, "cancel/"))
    assert asked.context["count"] == 3 and found.progress["queued"] == 3
    answer = as_root.post(path(found, "cancel/"), {"reason": "wrong file"}, follow=True)
    assert b"3 of its runs cancelled, 0 asked to stop." in answer.content
    assert AuditEntry.objects.get(action="cancel").reason == "wrong file"
    again = as_root.post(path(found, "cancel/"), follow=True)
    assert b"Every run of this submission has ended" in again.content


def test_the_failed_runs_of_a_submission_are_retried(as_root: Client, failed_run: Run) -> None:
    url = path(failed_run.submission_id, "retry/")
    assert as_root.get(url).context["count"] == 1
    answer = as_root.post(url, {"reason": "network"}, follow=True)
    assert b"1 of its runs queued again." in answer.content
    assert AuditEntry.objects.get(action="retry failed runs").reason == "network"
    again = as_root.post(url, follow=True)
    assert b"No run of this submission has failed." in again.content


@pytest.mark.parametrize(
    ("permissions", "role"), [(("view_submission",), "operator"), (ALL, "viewer")]
)
def test_verbs_need_the_permission_and_the_role(
    failed_run: Run, person: Callable[..., Client], permissions: tuple[str, ...], role: str
) -> None:
    """Without them neither a button is shown, nor does a request act."""
    waiting = made(failed_run.owner)
    client = person("mia", *permissions, acme=role)
    for key, verb in ((waiting.pk, "cancel/"), (failed_run.submission_id, "retry/")):
        assert path(key, verb) not in client.get(path(key)).content.decode()
        assert client.post(path(key, verb)).status_code == 403


def test_the_admin_and_the_page_link_to_each_other(as_root: Client, acme: Owner) -> None:
    found = made(acme)
    admin = f"/admin/jobs/submission/{found.pk}/change/"
    assert f'href="{path(found)}"' in as_root.get(admin).content.decode()
    assert admin in as_root.get(path(found)).content.decode()


def test_the_tiles_of_a_submission_are_no_links(as_root: Client, acme: Owner) -> None:
    """Nor are they when the live part is renewed: it would be another look."""
    [run] = submitted(acme)
    answer = as_root.get(f"/submissions/{run.submission_id}/")
    assert answer.content.count(b'class="card tile"') >= 1
    for tile in answer.content.split(b'class="card tile"')[1:]:
        assert b"<a " not in tile.partition(b"</div>")[0]
