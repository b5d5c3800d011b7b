"""jobs/api/submissions: forecast, watched and cancelled."""

from typing import Any

from django.test import Client

from jobs.api.kit import events
from jobs.models import Owner, Run
from jobs.owners.tokens import make_token
from tests.jobs.api.conftest import ROOT, Caller, post
from tests.jobs.scenes import submitted


def test_a_submission_goes_out_in_waves(caller: Caller, acme: Owner) -> None:
    """It is read with its waves, stopped, cut anew, resumed and released."""
    client = caller(acme)
    waves = {"sizes": [1, "50%", "100%"], "stop_at": "5%", "between": 600}
    body = {"task": "tests.add", "arguments": [{"x": 1, "y": 2}] * 10, "waves": waves}
    stored = post(client, "/submissions", body).json()
    assert stored["waves"] == [1, 5, 4]
    path = f"/submissions/{stored['id']}"
    answer = client.get(f"{ROOT}{path}")
    found, seen = answer.json(), {"headers": {"If-None-Match": answer["ETag"]}}
    assert client.get(f"{ROOT}{path}", **seen).status_code == 304
    assert found["progress"]["states"] == {"queued": 1, "held": 9}
    assert [wave["size"] for wave in found["rollout"]["waves"]] == [1, 5, 4]
    assert (found["rollout"]["stop_at"], found["rollout"]["between_seconds"]) == ("5%", 600)
    assert post(client, f"{path}/pause", {"reason": "why"}).json()["reason"] == "why"
    assert post(client, f"{path}/pause", {}).status_code == 409
    assert client.get(f"{ROOT}{path}", **seen).status_code == 200
    cut = post(client, f"{path}/resize", {"sizes": "2, 100%"}).json()
    assert [wave["size"] for wave in cut["waves"]] == [1, 2, 7]
    assert post(client, f"{path}/resume", {"retry_failed": True}).json()["state"] == "rolling"
    assert post(client, f"{path}/release", {}).json()["wave"] == 2
    assert post(client, f"{path}/approve", {}).status_code == 409


def test_a_stream_ends_with_its_submission(caller: Caller, acme: Owner, monkeypatch: Any) -> None:
    """It sends what is now, each change and the end; who has the end connects in vain."""
    monkeypatch.setattr(events, "POLL_SECONDS", 0.0)
    [run] = submitted(acme)
    caller(acme)
    secret = make_token("watcher", scopes=["read"], owner=acme).secret
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    path = f"{ROOT}/submissions/{run.submission_id}/events"
    answer: Any = client.get(path)
    parts = iter(answer.streaming_content)
    assert next(parts).startswith(b"retry:")
    assert b"event: progress" in next(parts)
    Run.objects.get().cancel()
    last = next(parts).decode()
    assert "event: end" in last and list(parts) == []
    [mark] = [line.removeprefix("id: ") for line in last.splitlines() if line.startswith("id: ")]
    assert client.get(path, headers={"Last-Event-ID": mark}).status_code == 204


def test_a_forecast_stores_nothing(caller: Caller, acme: Owner) -> None:
    body = {"task": "tests.add", "targets": ["sw-1", "sw-2"]}
    assert post(caller(acme), "/submissions/fit", body).json()["count"] == 2
    assert not Run.objects.exists()
