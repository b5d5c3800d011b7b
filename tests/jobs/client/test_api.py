"""jobs/client: what the command does when the server is away, or is not ours."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from jobs.api.jobs.schemas import JobSummary
from jobs.api.runs.schemas import RunSummary
from jobs.api.site import document
from jobs.client import api
from jobs.client.__main__ import main
from jobs.client.output import JOB_COLUMNS, RUN_COLUMNS

Reply = tuple[int, dict[str, str], Any]
AWAY: Reply = (503, {"Retry-After": "0"}, {"code": "database_away", "detail": "away"})
RUN: Reply = (202, {}, {"id": "7", "state": "queued"})


class Seen(list[tuple[str, str]]):
    """The requests of a scene: each method and path, and its idempotency key."""

    url = ""


@contextmanager
def server(*replies: Reply) -> Iterator[Seen]:
    """Serve these replies, one after the other, and the last one again and again."""
    seen = Seen()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.append((f"{self.command} {self.path}", self.headers.get("Idempotency-Key", "")))
            status, headers, body = replies[min(len(seen), len(replies)) - 1]
            content = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the names that http.server calls

        def log_message(self, *_args: Any) -> None:
            """Be silent."""

    with HTTPServer(("127.0.0.1", 0), Handler) as serving:
        seen.url = f"http://127.0.0.1:{serving.server_port}"
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield seen
        finally:
            serving.shutdown()
            thread.join()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command against an address."""

    def call(url: str, *words: str) -> int:
        monkeypatch.setattr(api, "PAUSE_SECONDS", 0.0)
        monkeypatch.setenv("FAIRSHIFT_URL", url)
        monkeypatch.setenv("FAIRSHIFT_TOKEN", "fs_secret")
        return main(words)

    return call


def test_a_submit_is_repeated_with_its_key(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Also without `--key`: the server may have stored what it could not answer."""
    with server(AWAY, AWAY, RUN) as seen:
        assert run(seen.url, "submit", "shop.order", "--arg", "n=1") == 0
    assert capsys.readouterr().out == "7\n"
    assert [path for path, _ in seen] == ["POST /api/v1/runs"] * 3
    assert len({key for _, key in seen}) == 1 and seen[0][1]


@pytest.mark.parametrize(("wrong", "lines"), [(1, 1), (2, 3), (12, 12)])
def test_wrong_fields_are_listed_once(
    run: Any, capsys: pytest.CaptureFixture[str], wrong: int, lines: int
) -> None:
    """The text of a problem has a single one already; of many, the first ten are listed."""
    errors = [{"field": f"arguments.{place}", "detail": "is wrong"} for place in range(wrong)]
    problem = {"code": "invalid", "detail": "arguments.0: is wrong", "errors": errors}
    with server((422, {}, problem)) as seen:
        assert run(seen.url, "submit", "shop.order") == 1
    assert capsys.readouterr().err.count("\n") == lines


def test_a_server_that_stays_away_is_status_4(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """With one line on the standard error, and never the token."""
    with server(AWAY) as seen:
        assert run(seen.url, "runs") == 4
    assert len(seen) == api.ATTEMPTS
    assert run("http://127.0.0.1:9", "runs") == 4
    said = capsys.readouterr().err
    assert said.startswith("fairshift: database_away: away\n") and said.count("\n") == 2
    assert "fs_secret" not in said


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("owners pause acme --reason night", "POST /owners/acme/pause"),
        ("owners change acme --weight 3", "PATCH /owners/acme"),
        ("owners create --slug acme", "POST /owners"),
        ("members create acme --user ann --role viewer", "POST /owners/acme/members"),
        ("members change acme/ann --role admin", "PATCH /owners/acme/members/ann"),
        ("members delete acme/ann --reason left", "DELETE /owners/acme/members/ann?reason=left"),
        ("mail-subscriptions delete 7", "DELETE /mail-subscriptions/7"),
        (
            'webhooks create --name ci --url https://ci.example/ --events ["run.ended"]',
            "POST /webhooks",
        ),
        ("calendars unpublish 7", "POST /calendars/7/unpublish"),
    ],
)
def test_actions_are_those_of_the_document(run: Any, words: str, asked: str) -> None:
    """Also a change, a deletion and a creation; the key of a member has two parts."""
    with server((200, {}, document(tasks=[], prefix="/api/v1/")), (200, {}, {})) as seen:
        assert run(seen.url, *words.split()) == 0
    method, _, path = asked.partition(" ")
    assert [one for one, _key in seen] == ["GET /api/v1/openapi.json", f"{method} /api/v1{path}"]


def test_a_key_of_one_part_names_no_member(run: Any) -> None:
    with server((200, {}, document(tasks=[], prefix="/api/v1/"))) as seen:
        assert run(seen.url, "members", "delete", "acme") == 2
    assert len(seen) == 1


def _progress(**states: int) -> Reply:
    return 200, {}, {"progress": {"states": states}}


def test_a_watch_asks_for_counts_and_only_for_what_is_open(
    run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """One request a look for a submission of any size; what has ended is not asked for again."""
    ended, half = _progress(failed=1), _progress(running=1, succeeded=2)
    with server(ended, half, half, _progress(succeeded=3)) as seen:
        assert run(seen.url, "watch", "7", "8", "--every", "0.1", "--json") == 3
    assert json.loads(capsys.readouterr().out) == {"failed": 1, "succeeded": 3}
    asked = [path.removeprefix("GET /api/v1/submissions/") for path, _ in seen]
    assert asked == ["7", "8", "8", "8"]


def test_a_submit_in_waves_names_their_runs(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = tmp_path / "calls"
    calls.write_text('{"n": 1}\n{"n": 2}\n{"n": 3}\n')
    with server((202, {}, {"id": 7, "run_count": 3, "waves": [1, 2]})) as seen:
        words = ("submit", "t", "--owner", "acme", "--each", str(calls), "--waves", "1, 100%")
        assert run(seen.url, *words) == 0
    assert capsys.readouterr().out == "7  3 runs in waves of 1, 2\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("submit", "t", "--each", "{file}", "--arg", "n=1"), "lines of the file"),
        (("submit", "t", "--name", "night"), "--name and --waves are for --each"),
        (("submit", "t", "--waves", "1, 100%"), "--name and --waves are for --each"),
        (("submit", "t", "--each", "{file}", "--stop-at", "5%"), "are for --waves"),
        (("submit", "t", "--each", "{folder}"), "Is a directory"),
        (("submit", "t", "--each", "{latin}"), "not UTF-8"),
        (("submit", "t", "--key", "…"), "header"),
        (("export", "--output", "{folder}/none/runs.csv"), "No such file"),
    ],
)
def test_wrong_usage_is_a_line_and_status_2(
    run: Any,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: tuple[str, ...],
    said: str,
) -> None:
    """No option is ignored, and no file is a traceback."""
    file, latin = tmp_path / "calls.ndjson", tmp_path / "latin.ndjson"
    file.write_text("{}")
    latin.write_bytes('{"name": "ü"}'.encode("latin-1"))
    places = {"file": file, "latin": latin, "folder": tmp_path}
    with server((200, {}, {})) as seen:
        assert run(seen.url, *(word.format(**places) for word in words)) == 2
    told = capsys.readouterr().err
    assert told.startswith("fairshift: ") and said in told and told.count("\n") == 1


def test_another_server_is_named_as_one(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A proxy's page is no problem of ours; a redirect shows where to, a 404 what may miss."""
    with server((404, {}, "a page")) as seen:
        assert run(seen.url, "run", "7") == 1
    told = capsys.readouterr().err
    assert "not_fairshift" in told and "It answers 404. It must have the path" in told
    assert "http://127.0.0.1:8000/fairshift" in told
    with server((301, {"Location": "https://jobs.example.com/"}, "moved")) as seen:
        assert run(seen.url, "run", "7") == 1
    assert "It answers 301 https://jobs.example.com/" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("columns", "sent"), [(RUN_COLUMNS, RunSummary), (JOB_COLUMNS, JobSummary)]
)
def test_a_table_shows_what_the_api_sends(columns: tuple[str, ...], sent: type[BaseModel]) -> None:
    """A column of another name would always be empty."""
    assert set(columns) <= set(sent.model_fields)


def test_a_log_is_followed_until_the_run_has_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each page once, by its cursor; gaps are named, and a terminal obeys no line."""

    def page(text: str, *, left_out: int = 0) -> Reply:
        line = {"at": "12:00", "level": "INFO", "logger": "shop", "text": text}
        items = [{**line, "left_out": left_out}]
        return 200, {}, {"items": items, "next": text[:1], "has_more": False}

    state: list[Reply] = [(200, {}, {"state": word}) for word in ("running", "succeeded")]
    replies = (state[0], page("a\x1b[2J"), state[1], page("b\nmore", left_out=2))
    with server(*replies) as seen:
        monkeypatch.setenv("FAIRSHIFT_URL", seen.url)
        monkeypatch.setenv("FAIRSHIFT_TOKEN", "fs_1")
        assert main(["runs", "logs", "7", "--follow", "--level", "INFO", "--every", "0.1"]) == 0
    paths = [path for path, _key in seen]
    log = "GET /api/v1/runs/7/log?level=INFO&limit=500&cursor="
    assert paths == ["GET /api/v1/runs/7", log, "GET /api/v1/runs/7", f"{log}a"]
    assert capsys.readouterr().out.splitlines() == [
        "12:00 INFO     shop: a\\u001b[2J",
        "… 2 lines left out …",
        "12:00 INFO     shop: b",
        "more",
    ]
