"""Retention: removes old history, after it has written it to an archive if there is one.

`rules` says when a row leaves. `spans` finds the day partitions of runs and attempts, `replacement`
replaces them by the rows that stay, `pruning` deletes rows one by one where a partition cannot go.
`other_tables` has what is not partitioned. `archive` writes and reads files. `rounds` is the round
of the system worker: all steps, in the order of deletion. `reads` previews what would leave, and
reads a run back from the archive.
"""
