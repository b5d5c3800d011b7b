"""Removes audit entries between scenes, as only the owner of the table may."""

from typing import Final

EMPTY_AUDIT: Final = """
DO $$ BEGIN
    -- Only when there is something: ALTER TABLE costs every scene a lock.
    IF EXISTS (SELECT FROM jobs_auditentry) THEN
        ALTER TABLE jobs_auditentry DISABLE TRIGGER audit_not_truncated;
        TRUNCATE jobs_auditentry;
        ALTER TABLE jobs_auditentry ENABLE TRIGGER audit_not_truncated;
    END IF;
END $$
"""
