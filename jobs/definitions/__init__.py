"""Jobs as callers define them: checks, upserts, imports from files and beat, and messages."""
