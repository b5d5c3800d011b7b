"""The tables, step by step. A released migration is never edited; a change is a new migration.

So migrations import nothing of the project but the validators in jobs/models/fields.py, and the SQL
that they run stands in sql/<number>_<name>.sql and nowhere else.
"""
