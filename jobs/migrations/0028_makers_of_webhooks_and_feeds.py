import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

HAVE_MAKERS = """
UPDATE jobs_webhookendpoint SET has_maker = true
WHERE created_by_id IS NOT NULL OR created_by_token_id IS NOT NULL;
UPDATE jobs_mailsubscription SET has_maker = true
WHERE created_by_id IS NOT NULL OR created_by_token_id IS NOT NULL;
"""


def has_maker() -> models.Field:
    return models.BooleanField(db_default=False, default=False, editable=False)


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("jobs", "0027_shared_calendars"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField("webhookendpoint", "has_maker", has_maker()),
        migrations.AddField("mailsubscription", "has_maker", has_maker()),
        migrations.AddField("calendar", "feed_has_maker", has_maker()),
        migrations.AddField(
            "calendar",
            "feed_by",
            models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunSQL(HAVE_MAKERS, migrations.RunSQL.noop),
    ]
