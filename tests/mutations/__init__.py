"""Guards of statements and scripts, each broken once: a table, and the tests that must notice."""
