"""The recurring engine: it finds due times that have passed, and makes their runs.

`pulse` makes ticks, `tick` finds the jobs that are due, `trigger` makes the runs. `misfire` and
`missed` handle due times that were missed, `overlap` earlier runs that have not ended, `pause`
paused jobs.
"""
