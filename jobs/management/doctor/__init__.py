"""`manage.py doctor`: what is broken in a running installation, and what to do about it.

Each check yields Django's messages with a stable id and a hint. `examination.py` runs them within a
deadline, side by side: the system checks, those of PostgreSQL (`postgres.py`, `pooling.py`,
`running.py`), those of Redis (`broker.py`, `rights.py`) and of this machine (`disk.py`).
`printed.py` makes text and JSON of what they find.
"""
