"""Jobs as callers define them: by call, from files, from celery-beat and by message.

`spec` checks one job, `upsert` writes many.
"""
