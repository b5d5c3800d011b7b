"""jobs/client: what the command does when the server is away, or is not ours."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from jobs.client import api
from jobs.client.__main__ import main
from jobs.client.output import cell

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

        do_POST = do_GET  # noqa: N815 - the name that http.server calls

        def log_message(self, *_args: Any) -> None:
            """Be silent."""

    with HTTPServer(("127.0.0.1", 0), Handler) as serving:
        seen.url = f"http://127.0.0.1:{serving.server_port}"
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield seen
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


def test_a_server_that_stays_away_is_status_4(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """With one line on the standard error, and never the token."""
    with server(AWAY) as seen:
        assert run(seen.url, "runs") == 4
    assert len(seen) == api.ATTEMPTS
    assert run("http://127.0.0.1:9", "runs") == 4
    said = capsys.readouterr().err
    assert said.startswith("fairshift: database_away: away\n") and said.count("\n") == 2
    assert "fs_secret" not in said


def test_another_server_is_named_as_one(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A proxy's page is no problem of ours."""
    with server((404, {}, "a page")) as seen:
        assert run(seen.url, "run", "7") == 1
    assert "not_fairshift" in capsys.readouterr().err


def test_cells_hold_no_control_characters() -> None:
    """A terminal would obey what a task wrote."""
    assert cell({"type": "E", "message": "a\x1b[2Jb\nc"}) == "E: a�[2Jb�c"
