"""The command-line client."""
