from django.db import migrations

# What raw SQL has written in place of a number is no limit here: it must not stop the statements
# that read the policies of many runs.
NEEDED = """
CREATE OR REPLACE FUNCTION jobs_needed(policy jsonb) RETURNS interval LANGUAGE sql IMMUTABLE AS $$
    SELECT make_interval(secs => coalesce(
        (jsonb_path_query_first(policy, '$.time_limit_seconds
            ? (@.type() == "number" && @ >= 0 && @ <= 1000000000)'))::float8,
        (jsonb_path_query_first(policy, '$.soft_time_limit_seconds
            ? (@.type() == "number" && @ >= 0 && @ <= 1000000000)'))::float8, 0))
$$
"""
BEFORE = """
CREATE OR REPLACE FUNCTION jobs_needed(policy jsonb) RETURNS interval LANGUAGE sql IMMUTABLE AS $$
    SELECT make_interval(secs => coalesce(
        (policy ->> 'time_limit_seconds')::float8, (policy ->> 'soft_time_limit_seconds')::float8, 0))
$$
"""


class Migration(migrations.Migration):
    dependencies = [("jobs", "0029_clock_of_beat")]

    operations = [migrations.RunSQL(NEEDED, BEFORE)]
