"""The tables, step by step. A released migration is never edited; a change is a new migration.

Migrations import nothing of the project but the validators in jobs/models/fields.py. Their SQL is
in sql/<number>_<name>.sql and nowhere else.
"""
