from django.db import migrations

from jobs.core.sql import statement

# What was judged by a deleted calendar before these triggers were there is judged again once.
AGAIN = "UPDATE jobs_owner SET calendar_version = calendar_version + 1 WHERE calendar_version > 0"
BACK = """
DROP TRIGGER group_shrank ON jobs_targetgroup_targets;
DROP TRIGGER group_grew ON jobs_targetgroup_targets;
DROP TRIGGER attachment_changed ON jobs_attachment;
DROP TRIGGER calendar_changed ON jobs_calendar;
DROP TRIGGER decision_changed ON jobs_windowdecision;
DROP TRIGGER window_changed ON jobs_window;
DROP TRIGGER window_came_or_went ON jobs_window;
DROP FUNCTION jobs_group_changed, jobs_attachment_changed, jobs_calendar_changed,
    jobs_decision_changed, jobs_window_changed, jobs_mark_stale;
ALTER TABLE jobs_calendar DROP COLUMN is_stale;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0010_audit_by_database"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.RunSQL(sql=statement("migrations/0011_calendar_changes"), reverse_sql=BACK),
        migrations.RunSQL(AGAIN, migrations.RunSQL.noop),
    ]
