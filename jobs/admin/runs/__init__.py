"""Runs and submissions: lists, stories, retry, override, the form to submit."""
