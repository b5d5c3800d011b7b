"""jobs/core/cipher.py: a text is read only where it was written, and only with its key."""

from uuid import UUID

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from jobs.core.cipher import PAYLOAD, RESULT, Damaged, Place, for_job, for_run, opened
from jobs.core.keyring import parsed
from tests.jobs.keys import KEY_1, KEY_2

RING = parsed(KEY_1)
ONE = UUID("019ab000-0000-7000-8000-000000000001")
OTHER = UUID("019ab000-0000-7000-8000-000000000002")
HERE = Place("acme", ONE, 7)


@pytest.mark.parametrize(
    ("field", "place"),
    [
        (RESULT, HERE),
        (PAYLOAD, Place("acme", OTHER, 7)),
        (PAYLOAD, Place("northwind", ONE, 7)),
        (PAYLOAD, Place("acme", None, 7)),
    ],
)
def test_a_text_is_not_read_elsewhere(field: str, place: Place) -> None:
    """Swapped between fields, runs or owners, it is refused."""
    sealed = for_run(RING, b"x", field=PAYLOAD, place=HERE)
    with pytest.raises(Damaged):
        opened(RING, sealed, key=1, field=field, place=place)


def test_every_byte_counts() -> None:
    """Also those of the header: none can be changed or cut off."""
    sealed = for_run(RING, b"secret", field=PAYLOAD, place=HERE)
    spoilt = [sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :] for at in range(len(sealed))]
    for bad in [*spoilt, *(sealed[:length] for length in range(len(sealed))), sealed + b"x"]:
        with pytest.raises(Damaged):
            opened(RING, bad, key=1, field=PAYLOAD, place=HERE)


def test_other_bytes_under_the_same_id_do_not_open_it() -> None:
    """A ring that was made anew with an old id is noticed."""
    sealed = for_run(RING, b"x", field=PAYLOAD, place=HERE)
    with pytest.raises(Damaged, match="key 1 does not open it"):
        opened(parsed(KEY_2.replace("2:", "1:")), sealed, key=1, field=PAYLOAD, place=HERE)


def test_equal_texts_of_a_run_differ_and_of_a_job_are_equal() -> None:
    """An upsert finds by comparison that a job has not changed; of other jobs nothing is equal."""
    assert len({for_run(RING, b"x", field=PAYLOAD, place=HERE) for _ in range(5)}) == 5
    assert len({for_job(RING, b"x", place=Place("acme", job=7)) for _ in range(5)}) == 1
    places = [Place("acme", job=1), Place("acme", job=12), Place("northwind", job=1)]
    nonces = {for_job(RING, text, place=place)[5:17] for text in (b"x", b"2x") for place in places}
    assert len(nonces) == 6


def test_a_job_s_text_is_read_from_its_runs_only() -> None:
    """The recurring engine copies it to each run inside the database."""
    sealed = for_job(RING, b"x", place=Place("acme", job=7))
    assert opened(RING, sealed, key=1, field=PAYLOAD, place=HERE) == b"x"
    for place in (Place("acme", ONE, 8), Place("acme", ONE), Place("northwind", ONE, 7)):
        with pytest.raises(Damaged):
            opened(RING, sealed, key=1, field=PAYLOAD, place=place)


def test_the_format_is_as_it_is_described() -> None:
    """An independent reading of what the module says: others may read it without our code."""
    sealed = for_run(RING, b"x", field=PAYLOAD, place=HERE)
    header, nonce, rest = sealed[:5], sealed[5:17], sealed[17:]
    assert header[:3] == b"\x01\x00\x01"
    info = b"fairshift\x00" + header + b"\x00acme"
    key = HKDF(SHA256(), 32, salt=None, info=info).derive(bytes([1]) * 32)
    bound = header + b"\x00payload\x00acme\x00" + ONE.hex[12:].encode()
    assert AESGCM(key).decrypt(nonce, rest, bound) == b"x"
