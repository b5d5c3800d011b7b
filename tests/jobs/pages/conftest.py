"""The people who visit pages: those of the admin's tests."""

from tests.jobs.admin.conftest import as_root, failed_run, offered, person, root

__all__ = ["as_root", "failed_run", "offered", "person", "root"]
