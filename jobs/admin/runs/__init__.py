"""Runs (list in `page`) and submissions: history, retry, override, the form to submit."""
