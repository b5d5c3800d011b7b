"""jobs/system/notices/signing.py: signatures that other implementations verify."""

import base64
import hmac
import subprocess
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


def test_each_valid_key_signs() -> None:
    """A receiver that has only the old key, or only the new one, verifies the same delivery."""
    new, old = signing.new_secret(), signing.new_secret()
    headers = signed(new, old)
    for secret in (new, old):
        assert Webhook(signing.shown(secret)).verify(BODY, headers)


def test_openssl_makes_the_same_signature() -> None:
    """HMAC-SHA256 over id, time and body, in base64."""
    secret = signing.new_secret()
    headers = signed(secret)
    done = subprocess.run(
        [
            "openssl",
            "dgst",
            "-sha256",
            "-mac",
            "HMAC",
            "-macopt",
            f"hexkey:{secret.hex()}",
            "-binary",
        ],
        input=f"evt_1.{headers['webhook-timestamp']}.{BODY}".encode(),
        capture_output=True,
        check=True,
    )
    assert hmac.compare_digest(
        headers["webhook-signature"], f"v1,{base64.b64encode(done.stdout).decode()}"
    )
