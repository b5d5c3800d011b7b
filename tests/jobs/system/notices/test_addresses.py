"""jobs/system/notices/endpoints.py: which addresses an endpoint may have."""

from typing import Any

import pytest

from jobs.core.errors import OptionError
from jobs.models import Owner, WebhookEndpoint
from jobs.system.notices.endpoints import change_endpoint
from tests.jobs.system.notices.scenes import endpoint

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]", "0x7f.1"]
)
def test_an_inner_address_is_refused_when_it_is_given(
    acme: Owner, settings: Any, host: str
) -> None:
    """At the field `url`, by the rule of the HTTP task, also in a change; unless it is listed."""
    there = endpoint(acme, "https://ci.example/hook")
    url = f"https://{host}/hook"
    for act in (lambda: endpoint(acme, url), lambda: change_endpoint(there, {"url": url})):
        with pytest.raises(OptionError) as refused:
            act()
        assert refused.value.option == "url"
        assert "the host" in refused.value.problem
    assert [one.url for one in WebhookEndpoint.objects.all()] == ["https://ci.example/hook"]
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "HTTP_ALLOWED_HOSTS": (f"acme@{host}",)}
    assert endpoint(acme, url).url == url
