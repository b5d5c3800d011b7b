from typing import Any

from django.db import migrations

LABEL = "Can see the arguments, the result and the error texts of a run"


def rename(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001  Django hands both in
    """Give the permission its new label; Django does so for new permissions only."""
    permissions = apps.get_model("auth", "Permission").objects
    permissions.filter(content_type__app_label="jobs", codename="view_arguments").update(name=LABEL)


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0021_deleted_webhooks"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="run",
            options={
                "verbose_name": "run",
                "verbose_name_plural": "runs",
                "ordering": ("-id",),
                "permissions": [
                    ("cancel_run", "Can cancel a run"),
                    ("retry_run", "Can retry a run"),
                    ("move_run", "Can move a run to another task, or fail it unstarted"),
                    ("view_arguments", LABEL),
                ],
            },
        ),
        migrations.RunPython(rename, migrations.RunPython.noop),
    ]
