-- Remove all that 0005_functions.py has made. CASCADE removes the triggers and policies that call a
-- function. The role stays: other databases of the server may use it.
DROP FUNCTION jobs_audit_is_append_only, jobs_audit_by_database, jobs_audit_is_not_truncated,
    jobs_job_is_changed, jobs_job_begins_paused, jobs_scheduled_id,
    jobs_calendars(bigint, bigint, bigint), jobs_calendars(bigint, bigint, bigint, text),
    jobs_gate, jobs_ends, jobs_needed,
    jobs_mark_stale, jobs_window_changed, jobs_decision_changed, jobs_calendar_changed,
    jobs_attachment_changed, jobs_group_changed, jobs_known_tasks, jobs_note_touched,
    jobs_grant_tenant, jobs_tenant_owners CASCADE;
DROP VIEW jobs_intervals;
DROP TABLE jobs_touched;
DROP INDEX job_due_interval, job_due_cron, job_due_once, job_changed, job_paused_from, job_by_task,
    job_by_schedule, job_paused, job_disabled, job_broken, job_by_key, job_by_name, target_by_name,
    missed_by_reason;
DO $$
BEGIN
    FOR class IN 0..63 LOOP
        EXECUTE format('DROP SEQUENCE jobs_phase_%s', class);
    END LOOP;
END $$;
ALTER TABLE jobs_job DROP COLUMN changed_xid;
ALTER TABLE jobs_tick DROP COLUMN seen;
ALTER TABLE jobs_cursor DROP COLUMN again_seen;
ALTER TABLE jobs_calendar DROP COLUMN is_stale;
DELETE FROM jobs_cursor;
