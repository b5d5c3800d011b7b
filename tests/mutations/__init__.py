"""Every guard broken once: a table of them, and the tests that must notice."""
