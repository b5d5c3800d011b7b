import uuid
from typing import Any, ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies: ClassVar[list[Any]] = [("auth", "0012_alter_user_first_name_max_length")]
    operations: ClassVar[list[Any]] = [
        migrations.CreateModel(
            name="Person",
            fields=[
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True)),
                ("is_superuser", models.BooleanField(default=False)),
                ("key", models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                ("mail", models.EmailField(max_length=254, unique=True)),
                ("is_staff", models.BooleanField(default=False)),
                ("is_active", models.BooleanField(default=True)),
                ("groups", models.ManyToManyField(blank=True, to="auth.group")),
                ("user_permissions", models.ManyToManyField(blank=True, to="auth.permission")),
            ],
            options={"abstract": False},
        )
    ]
