"""jobs/pages/error_reports.py: what Django's error page shows with DEBUG."""

from typing import Any

import pytest
from django.conf import global_settings
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from jobs.core import keyring
from jobs.pages.error_reports import hide_secrets_in_error_reports
from tests.jobs.keys import KEY_1, KEY_2, use_ring

PASSWORD = "hunter2-hunter2"
QUOTED = "h%26nter<2>"
URLS = (
    f"postgresql://fairshift:{PASSWORD}@db.example/fairshift",
    f"redis://:{PASSWORD}@cache.example:6379/0",
    f"sentinel://:{PASSWORD}@one:26379;sentinel://:{PASSWORD}@two:26379",
    f"https://bot:{PASSWORD}@hooks.example/path?x=1",
)


def fail(request: HttpRequest) -> HttpResponse:
    """Fail with secrets in variables, plain and within others, and in the error's text."""
    urls = list(URLS)
    options = {"host": "db.example", "password": PASSWORD, "long": "x" * 5_000 + URLS[0]}
    raise ValueError(f"no connection to {urls[1]}, {options['host']}")


def fail_with_ring(request: HttpRequest) -> HttpResponse:
    """Fail within the code that reads keys, as from a file: they are in no setting."""
    return HttpResponse(str(keyring.parsed(f"{KEY_1},{KEY_2},1:broken")))


urlpatterns = [path("fail", fail), path("ring", fail_with_ring)]


@pytest.fixture
def debug(settings: Any) -> Any:
    settings.DEBUG = True
    settings.DEBUG_PROPAGATE_EXCEPTIONS = False
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = []
    settings.CELERY_BROKER_URL = URLS[1]
    settings.REDIS_URL = URLS[2]
    settings.DATABASE_URL = URLS[0]
    settings.OTHER_URL = f"amqp://guest:{QUOTED.replace('<2>', '')}@mq.example//"
    settings.EMAIL_HOST_PASSWORD = "letter-box-5"
    settings.SECRET_KEY = "sign-with-this"
    use_ring(settings, KEY_1, KEY_2)
    return settings


def texts(url: str, **environ: str) -> list[str]:
    """Return the error page, and the report as text."""
    client = Client(raise_request_exception=False)
    return [
        client.get(url, headers={"accept": accept}, **environ).content.decode()  # type: ignore[arg-type] # variables of the process are in META, too
        for accept in ("text/html", "text/plain")
    ]


def test_no_secret_is_on_the_error_page(debug: Any) -> None:
    """In settings, in variables of the process, in those of frames, in the text of the error."""
    for text in texts("/fail", DATABASE_URL=URLS[0], APP_DSN=URLS[3]):
        assert "no connection to redis://:" in text and "cache.example" in text
        assert "db.example" in text and "hooks.example" in text and "mq.example" in text
        for secret in (PASSWORD, "letter-box-5", "sign-with-this", "h%26nter", "h&amp;nter"):
            assert secret not in text
        assert KEY_1[2:] not in text and KEY_2[2:] not in text
    for text in texts("/ring"):
        assert "not base64" in text
        assert KEY_1[2:] not in text and KEY_2[2:] not in text


def test_a_project_s_own_reporter_stays(settings: Any) -> None:
    """Only Django's default is replaced."""
    name = "DEFAULT_EXCEPTION_REPORTER_FILTER"
    setattr(settings, name, "shop.reports.Filter")
    hide_secrets_in_error_reports()
    assert getattr(settings, name) == "shop.reports.Filter"
    setattr(settings, name, getattr(global_settings, name))
    hide_secrets_in_error_reports()
    assert getattr(settings, name).startswith("jobs.")
