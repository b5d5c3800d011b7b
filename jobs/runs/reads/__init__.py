"""Reads of runs for the API and the admin: pages of lists, searches, counts for a page of rows."""
