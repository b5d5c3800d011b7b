"""Journeys of runs through all verbs at once, on a clock that is moved by hand."""
