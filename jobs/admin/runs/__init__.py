"""Runs and submissions: lists, the page of a run, retry, override, the form to submit."""
