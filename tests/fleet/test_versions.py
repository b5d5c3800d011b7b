"""fleet/versions.py: which versions are reported as untested, and how."""

import pytest

from fleet import versions


def test_the_installed_versions_are_tested_ones() -> None:
    """Those of the lock file: this suite has run on them."""
    assert versions.untested_versions() == ""


def test_untested_versions_and_the_tested_ones_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, with the cure."""
    installed = {"celery": "5.7.0", "billiard": "4.3.9", "kombu": "5.7.9"}
    monkeypatch.setattr(versions, "version", installed.__getitem__)
    assert versions.untested_versions() == (
        "Fairshift was not tested with billiard 4.3.9 and kombu 5.7.9, but with celery 5.7.0,"
        " billiard 4.3.2, kombu 5.7.0: install tested versions, or set"
        ' "allow_untested_versions": True in broker_transport_options (docs/operate/pools.md).'
    )
