"""Owners, targets, groups, workers, and the audit."""
