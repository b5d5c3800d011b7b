"""What runs by itself.

`promotion` queues runs whose time has come. `rescue` takes back the runs of lost workers. `sweep`
publishes missing hints, all of them after Redis was emptied. `partitions` makes those of coming
days. `heartbeat` renews the lease of a worker on its runs; `lease` is the one of celery-beat.
`rollups` counts what ended in each minute, for pages and metrics. `retention` removes old history.
"""
