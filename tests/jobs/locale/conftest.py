"""The people who visit pages: those of the admin's tests."""

from tests.jobs.admin.conftest import (
    _quick_passwords,
    as_root,
    failed_run,
    person,
    root,
)

__all__ = ["_quick_passwords", "as_root", "failed_run", "person", "root"]
