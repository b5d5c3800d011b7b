"""jobs/system/notices/signing.py: signatures that other implementations verify."""

from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from jobs.system.notices import signing

BODY = '{"type":"run.ended","data":{"owner":"acmé"}}'


def signed(*secrets: bytes, body: str = BODY) -> dict[str, str]:
    """Return the headers of a delivery that is sent now: a verifier accepts five minutes."""
    at = int(datetime.now(UTC).timestamp())
    return signing.headers(secrets, event_id="evt_1", at=at, body=body)


def test_the_library_of_the_specification_verifies_a_delivery() -> None:
    """And refuses another body, another id and another key."""
    secret = signing.new_secret()
    verifier = Webhook(signing.shown(secret))
    headers = signed(secret)
    assert verifier.verify(BODY, headers)["type"] == "run.ended"
    for wrong in (
        lambda: verifier.verify(BODY.replace("acmé", "globex"), headers),
        lambda: verifier.verify(BODY, {**headers, "webhook-id": "evt_2"}),
        lambda: Webhook(signing.shown(signing.new_secret())).verify(BODY, headers),
    ):
        with pytest.raises(WebhookVerificationError):
            wrong()
