"""System checks with ids: each says what would break a promise, and the fix."""
