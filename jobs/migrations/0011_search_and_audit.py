from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Collate

OF_LISTS = {
    "audit_of_owner": ["owner", "-id"],
    "audit_by_actor": ["actor_name", "-id"],
    "audit_by_action": ["action", "-id"],
    "audit_by_time": ["at"],
}


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0010_rollups"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        *(
            migrations.AddIndex(
                model_name="auditentry", index=models.Index(fields=fields, name=name)
            )
            for name, fields in OF_LISTS.items()
        ),
        migrations.AddIndex(
            model_name="calendar",
            index=models.Index(Collate("name", "C"), models.F("owner"), name="calendar_by_name"),
        ),
    ]
