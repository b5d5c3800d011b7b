"""Retention: removes old history, after it has written it to an archive if there is one.

`rules` says when a row leaves. `spans` finds the day partitions of runs and attempts, `replacement`
replaces them by the rows that stay, `pruning` deletes rows one by one where a partition cannot go.
`other_tables` deletes from tables without partitions. `archive` writes and reads files. `rounds`
runs all of these steps, in the order of deletion: the system worker calls it. `reads` shows what
would be deleted, and reads a run back from the archive.
"""
