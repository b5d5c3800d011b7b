"""The overview: whether all is well, and if not, what to do.

`reading.py` reads, `verdict.py` decides from `facts.py`, `words.py` says why an owner waits,
`picture.py` draws, `page.py` shows. `operator.py` is a visitor who sees all rows.
"""
