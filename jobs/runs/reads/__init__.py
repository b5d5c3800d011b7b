"""What faces read of runs: lists by pages, searches of the admin, counts for pages of rows."""
