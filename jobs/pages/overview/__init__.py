"""The overview: whether all is well, by the verdict, and the numbers of now.

`words.py` says why an owner waits, `picture.py` draws, `page.py` shows.
"""
