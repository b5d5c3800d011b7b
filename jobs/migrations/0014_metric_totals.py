from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0013_saved_views")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="MetricOwner",
            fields=[
                ("owner_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("load", models.FloatField()),
            ],
        ),
        migrations.CreateModel(
            name="MetricTotal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("owner_id", models.BigIntegerField()),
                ("queue", models.CharField(max_length=100)),
                ("name", models.CharField(max_length=20)),
                ("value", models.FloatField()),
            ],
        ),
        migrations.AddConstraint(
            model_name="metrictotal",
            constraint=models.UniqueConstraint(
                fields=("owner_id", "queue", "name"), name="metric_total_once"
            ),
        ),
        # A minute's missed spans are found by it. The table has few rows.
        migrations.AddIndex(
            model_name="missed",
            index=models.Index(fields=["created_at"], name="missed_recorded"),
        ),
    ]
