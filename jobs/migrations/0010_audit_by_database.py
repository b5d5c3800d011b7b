from django.db import migrations, models

from jobs.core.sql import statement


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0009_stored_import_report"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="auditentry",
            name="database_role",
            field=models.CharField(
                db_default="", editable=False, max_length=63, verbose_name="database role"
            ),
        ),
        migrations.RunSQL(
            statement("migrations/0010_audit_by_database"),
            "DROP TRIGGER audit_not_truncated ON jobs_auditentry;"
            "DROP TRIGGER audit_by_database ON jobs_auditentry;"
            "DROP FUNCTION jobs_audit_is_not_truncated, jobs_audit_by_database;",
        ),
    ]
