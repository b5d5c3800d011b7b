from django.db import migrations

# One row with another shape would stop the events of all endpoints and subscriptions.
LISTS = {
    "jobs_webhookendpoint": ("events", "tasks", "states"),
    "jobs_mailsubscription": ("events", "tasks", "states", "addresses"),
}
# PostgreSQL's unnest() flattens an array of several dimensions.
MEND = """
UPDATE {table} SET {column} = ARRAY(
    SELECT one FROM unnest({column}) AS one WHERE one IS NOT NULL)
WHERE NOT CASE array_ndims({column}) WHEN 1 THEN array_position({column}, NULL) IS NULL
    ELSE {column} = '{{}}' END
"""
REFUSE = """
ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_is_a_flat_list
CHECK (CASE array_ndims({column}) WHEN 1 THEN array_position({column}, NULL) IS NULL
    ELSE {column} = '{{}}' END)
"""
ALLOW = "ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_is_a_flat_list"


def each(*texts: str) -> str:
    return ";".join(
        text.format(table=table, column=column)
        for text in texts
        for table, columns in LISTS.items()
        for column in columns
    )


class Migration(migrations.Migration):
    dependencies = [("jobs", "0030_needs_of_any_policy")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.RunSQL(each(MEND), migrations.RunSQL.noop),
        migrations.RunSQL(each(REFUSE), each(ALLOW)),
    ]
