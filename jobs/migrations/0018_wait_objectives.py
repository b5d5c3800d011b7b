from django.db import migrations, models

from jobs.models.fields import OBJECTIVE_PERCENT_LIMITS, OBJECTIVE_SECONDS_LIMITS


class Migration(migrations.Migration):
    dependencies = [("jobs", "0017_encryption")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="owner",
            name="wait_objective_percent",
            field=models.FloatField(
                db_default=95,
                default=95,
                help_text="The part that starts within that wait: 50 to 99.9.",
                validators=OBJECTIVE_PERCENT_LIMITS,
                verbose_name="objective: percent of the starts",
            ),
        ),
        migrations.AddField(
            model_name="owner",
            name="wait_objective_seconds",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="From when a run may start to its start: 1 to 86400. Empty: no objective.",
                null=True,
                validators=OBJECTIVE_SECONDS_LIMITS,
                verbose_name="objective: longest wait in seconds",
            ),
        ),
        migrations.AddConstraint(
            model_name="owner",
            constraint=models.CheckConstraint(
                condition=models.Q(wait_objective_seconds__isnull=True)
                | models.Q(wait_objective_seconds__range=(1, 86400)),
                name="owner_wait_objective_1_to_86400",
            ),
        ),
        migrations.AddConstraint(
            model_name="owner",
            constraint=models.CheckConstraint(
                condition=models.Q(wait_objective_percent__range=(50.0, 99.9)),
                name="owner_wait_objective_percent_50_to_99_9",
            ),
        ),
    ]
