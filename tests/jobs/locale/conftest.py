"""The visitor of pages: the superuser of the admin's tests."""

from tests.jobs.admin.conftest import as_root, root

__all__ = ["as_root", "root"]
