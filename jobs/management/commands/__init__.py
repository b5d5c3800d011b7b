"""The commands; each is one file."""
