"""The verdict: what is wrong with the installation, the worst first, and what to do about it.

`reading.py` reads `facts.py`, `rules.py` and `owner_rules.py` decide. The overview, `manage.py
status`, the doctor and the metrics show it. `operator.py` is a reader who sees all rows.
"""
