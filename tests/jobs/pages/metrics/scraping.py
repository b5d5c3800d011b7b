"""Scrapes for scenes: the metrics as Prometheus reads them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from jobs.owners.tokens import make_token
from jobs.pages.metrics.families import PREFIX
from jobs.pages.metrics.scrape import scraped
from tests.flows.world import publishing_to

NOWHERE = "redis://127.0.0.1:1/0"

Found = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def series() -> Found:
    """Scrape; return the value of each series by name and labels."""
    return parsed(scraped().decode())


def parsed(text: str) -> Found:
    """Return the value of each series of a text."""
    return {
        (sample.name.removeprefix(PREFIX), frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Found, name: str, **labels: str) -> float:
    """Return the value of one series, by its name without the prefix."""
    return found[name, frozenset(labels.items())]


def ask(path: str = "/metrics", *, secret: str = "", **meta: Any) -> Any:
    """Ask for a path, with a token if there is one; return the answer."""
    given = {"HTTP_AUTHORIZATION": f"Bearer {secret}"} if secret else {}
    # Errors are answers here, as for a program.
    return Client(raise_request_exception=False).get(path, **{**given, **meta})


def secret_of(*scopes: str, **facts: Any) -> str:
    """Return the secret of a new token with these scopes."""
    return make_token("prometheus", scopes=scopes or ("read",), **facts).secret


@contextmanager
def redis_at(url: str) -> Iterator[None]:
    """Let this process look for Redis at another address."""
    with pytest.MonkeyPatch.context() as patch, publishing_to(url, patch):
        yield
