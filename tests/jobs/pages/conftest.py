"""The people who visit pages: those of the admin's tests."""
