"""Jobs as callers define them: checks, upserts, imports from files, from beat and by message."""
