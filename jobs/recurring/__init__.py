"""The recurring engine: which due times have passed, and the runs that are made of them.

`pulse` makes the ticks, `tick` finds what is due, `trigger` makes the runs; `misfire` and `missed`
deal with due times that were not met, `overlap` with runs that have not ended, `pause` with jobs
that must not run for a while.
"""
