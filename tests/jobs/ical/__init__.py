"""Tests of jobs/ical."""
