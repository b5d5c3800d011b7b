"""Rollups: what ended in each minute, by owner, task, outcome and error.

`rolling` writes them from the rows of attempts and runs. `reads` is what pages and metrics read.
`histogram` says what a bucket means. `metric_totals` are counters that the writer adds minutes to.
"""
