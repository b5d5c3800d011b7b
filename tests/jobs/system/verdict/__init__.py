"""The verdict."""
