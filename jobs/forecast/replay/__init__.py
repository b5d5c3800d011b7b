"""What if: a recorded load, replayed with other weights, caps, windows or numbers of slots.

`recorded` and `rolled` read a load from rows, `overhead` measures what a start costs in it. The
rest is pure: `load` has the values, `lines` and `simulation` replay, `results` and `objective`
judge. `plan` puts them together; `changes` reads what is to be different from texts.
"""
