import django.contrib.postgres.fields
from django.db import migrations, models

HAVE_MAKERS = """
UPDATE jobs_apitoken SET has_maker = true
WHERE created_by_id IS NOT NULL OR created_by_token_id IS NOT NULL
"""


class Migration(migrations.Migration):
    dependencies = [("jobs", "0024_rounds_by_the_pulse")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="apitoken",
            name="has_maker",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.AddField(
            model_name="window",
            name="earlier_requesters",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=50),
                db_default=[],
                default=list,
                editable=False,
                size=None,
            ),
        ),
        migrations.RunSQL(HAVE_MAKERS, migrations.RunSQL.noop),
    ]
