"""Jobs: form, schedule, preview, health, import, backfill, missed due times."""
