"""Pool."""
