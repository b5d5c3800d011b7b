"""The project's own tests store passwords for their own process alone."""

from tests.passwords import quick_passwords

__all__ = ["quick_passwords"]
