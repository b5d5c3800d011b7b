"""Requests to the REST API, repeated while the server is away."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import urllib3

ATTEMPTS: Final = 5
PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 30.0
PAGE: Final = 500
REPEATABLE: Final = (429, 503)

Query = Sequence[tuple[str, str]]


class UsageError(Exception):
    """The command line, a variable, or a file that it names, is wrong."""


class Refused(Exception):
    """The server refused the request; the text is that of its problem details."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(status, problem)
        self.status = status
        self.problem = problem

    def __str__(self) -> str:
        lines = [f"{self.problem.get('code', self.status)}: {self.problem.get('detail', '')}"]
        errors = self.problem.get("errors") or []
        # The text has a single one already.
        errors = errors if len(errors) > 1 else []
        lines += [f"  {one['field']}: {one['detail']}" for one in errors[:10]]
        if len(errors) > 10:
            lines.append(f"  and {len(errors) - 10:,} more")
        return "\n".join(lines)


class Away(Exception):
    """The server did not answer, or asked for a later repetition too often."""


class Api:
    """The API at one address, for the owner of one token."""

    def __init__(self, url: str, token: str) -> None:
        self._root = f"{url.rstrip('/')}/api/v1"
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        # Retries are ours: they follow Retry-After, and only where a repetition is safe.
        self._pool = urllib3.PoolManager(
            retries=False, timeout=urllib3.Timeout(connect=10, read=60)
        )

    def get(self, path: str, query: Query = ()) -> Any:
        """Return the value of an answer."""
        return self._value(self._request("GET", path, query=query))

    def post(self, path: str, body: Any, *, key: str = "", is_repeatable: bool = True) -> Any:
        """Send a body; return the value of the answer.

        A submit has an idempotency key, so that its repetition makes nothing twice.
        """
        headers = {"Idempotency-Key": key} if key else {}
        return self._value(
            self._request("POST", path, body=body, headers=headers, is_repeatable=is_repeatable)
        )

    def send(
        self, method: str, path: str, fields: Mapping[str, Any], *, key: str, version: str
    ) -> Any:
        """Perform an action; a change and a deletion are of this version of a row, `*`: of any."""
        if method == "POST":
            return self.post(path, dict(fields), key=key, is_repeatable=bool(key))
        own: dict[str, Any] = {"headers": {"If-Match": version}}
        if method == "PATCH":
            return self._value(self._request(method, path, body=dict(fields), **own))
        own |= {"query": list(fields.items()), "is_repeatable": False}
        return self._value(self._request(method, path, **own))

    def pages(self, path: str, query: Query = (), *, most: int | None = None) -> Iterator[Any]:
        """Yield the rows of a list, `most` at most."""
        cursor, count = "", 0
        while cursor is not None and (most is None or count < most):
            limit = PAGE if most is None else min(PAGE, most - count)
            page = self.get(path, [*query, ("limit", str(limit)), ("cursor", cursor)])
            yield from page["items"]
            count += len(page["items"])
            cursor = page["next"]

    def lines(self, path: str, query: Query = ()) -> Iterator[bytes]:
        """Yield the parts of an answer while they arrive."""
        answer = self._request("GET", path, query=query, preload_content=False)
        try:
            yield from answer.stream(2**16)
        except urllib3.exceptions.HTTPError as error:
            raise Away(f"the answer ended early: {error}") from error
        finally:
            answer.release_conn()

    def _request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        preload_content: bool = True,
        is_repeatable: bool = True,
    ) -> Any:
        sent = {**self._headers, **(headers or {})}
        if not preload_content:
            sent["Accept"] = "*/*"
        if body is not None:
            sent["Content-Type"] = "application/json"
        problem, pause = "", 0.0
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(pause)
            pause = PAUSE_SECONDS * 2**attempt
            try:
                answer = self._pool.request(
                    method,
                    f"{self._root}{path}",
                    fields=None if body is not None else list(query),
                    body=None if body is None else json.dumps(body).encode(),
                    headers=sent,
                    preload_content=preload_content,
                )
            except urllib3.exceptions.LocationValueError as error:
                raise UsageError(f"FAIRSHIFT_URL is no address: {error}") from error
            except UnicodeEncodeError as error:
                # http.client encodes headers only.
                text = "FAIRSHIFT_TOKEN or --key has a character that no header can have"
                raise UsageError(text) from error
            except urllib3.exceptions.HTTPError as error:
                problem = f"{self._root} does not answer: {error}"
                if not is_repeatable:
                    break
                continue
            if 200 <= answer.status < 300:
                return answer
            refusal = _refusal(answer)
            if answer.status not in REPEATABLE:
                raise refusal
            problem = str(refusal)
            given = answer.headers.get("Retry-After", "")
            pause = float(given) if given.isdecimal() else pause
            if pause > LONGEST_PAUSE_SECONDS:
                break
        raise Away(problem)

    @staticmethod
    def _value(answer: Any) -> Any:
        return json.loads(answer.data) if answer.data else None


def new_key() -> str:
    """Return a key under which one submit is made once."""
    return f"fairshift-{uuid.uuid4()}"


def _refusal(answer: Any) -> Refused:
    try:
        problem = json.loads(answer.data)
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        place = answer.headers.get("Location", "")
        text = f"is FAIRSHIFT_URL right? It answers {answer.status} {place}".strip()
        if answer.status == HTTPStatus.NOT_FOUND:
            text += (
                ". It must have the path at which the project mounts jobs.urls, such as"
                " http://127.0.0.1:8000/fairshift"
            )
        problem = {"code": "not_fairshift", "detail": text}
    return Refused(answer.status, problem)
