from django.core.validators import RegexValidator
from django.db import migrations, models

ONE_LINE = RegexValidator(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029]", "Control characters are not allowed.", inverse_match=True
)


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0025_makers_and_requesters"),
    ]

    operations = [
        migrations.AlterField(
            model_name="apitoken",
            name="name",
            field=models.CharField(
                help_text="The program that uses it, for the audit.",
                max_length=100,
                validators=[ONE_LINE],
                verbose_name="name",
            ),
        ),
        migrations.AlterField(
            model_name="calendar",
            name="name",
            field=models.CharField(max_length=200, validators=[ONE_LINE], verbose_name="name"),
        ),
        migrations.AlterField(
            model_name="job",
            name="key",
            field=models.CharField(
                help_text="The caller's own id of the job.",
                max_length=200,
                validators=[ONE_LINE],
                verbose_name="key",
            ),
        ),
        migrations.AlterField(
            model_name="job",
            name="name",
            field=models.CharField(
                blank=True, max_length=200, validators=[ONE_LINE], verbose_name="name"
            ),
        ),
        migrations.AlterField(
            model_name="mailsubscription",
            name="name",
            field=models.CharField(max_length=100, validators=[ONE_LINE], verbose_name="name"),
        ),
        migrations.AlterField(
            model_name="owner",
            name="name",
            field=models.CharField(
                blank=True, max_length=200, validators=[ONE_LINE], verbose_name="name"
            ),
        ),
        migrations.AlterField(
            model_name="savedview",
            name="name",
            field=models.CharField(max_length=60, validators=[ONE_LINE], verbose_name="name"),
        ),
        migrations.AlterField(
            model_name="target",
            name="name",
            field=models.CharField(max_length=200, validators=[ONE_LINE], verbose_name="name"),
        ),
        migrations.AlterField(
            model_name="targetgroup",
            name="name",
            field=models.CharField(max_length=200, validators=[ONE_LINE], verbose_name="name"),
        ),
        migrations.AlterField(
            model_name="webhookendpoint",
            name="name",
            field=models.CharField(max_length=100, validators=[ONE_LINE], verbose_name="name"),
        ),
    ]
